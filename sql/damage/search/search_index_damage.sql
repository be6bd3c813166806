-- The tool checks the pages of each table of an index, opens it, and with --deep runs sql/search/checking.sql on a private copy.
-- For an operator:

-- name: tables
-- One row per table of a full-text index, with the pages that it begins at: `PRAGMA quick_check(<table>)` asks one of them.
SELECT part.name, part.rootpage
  FROM sqlite_schema AS search
  JOIN sqlite_schema AS part
    ON part.name IN (search.name || '_data', search.name || '_idx', search.name || '_content', search.name || '_docsize',
                     search.name || '_config')
 WHERE search.sql LIKE 'CREATE VIRTUAL TABLE%fts5%'
 ORDER BY part.name;
