-- Questions about a whole file, whatever tables it has: hermes_dbtools/verification.py.

-- name: ordinary-tables
-- One row per table that holds rows of its own: no view, no virtual table, no shadow of one, none of SQLite's.
SELECT name
  FROM pragma_table_list
 WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
 ORDER BY name;

-- name: virtual-tables
-- One row per virtual table: in a store, its search indexes.
SELECT name
  FROM pragma_table_list
 WHERE schema = 'main' AND type = 'virtual'
 ORDER BY name;

-- name: count
-- How many rows the table has; {table} is its quoted name.
SELECT count(*) FROM {table};

-- name: search-trees
-- One row per tree that belongs to a full-text index: its root page. A damaged page there is no damage of the rows.
SELECT DISTINCT part.rootpage
  FROM sqlite_schema AS search
  JOIN sqlite_schema AS part
    ON part.tbl_name IN (search.name || '_data', search.name || '_idx', search.name || '_content',
                         search.name || '_docsize', search.name || '_config')
 WHERE search.sql LIKE 'CREATE VIRTUAL TABLE%USING%fts5%' AND part.rootpage > 0
 ORDER BY part.rootpage;
