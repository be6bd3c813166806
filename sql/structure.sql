-- What tells of two parts of a file that do not fit which one is at fault: read by hermes_dbtools/structure.py.

-- name: first-entry
-- The first entry of an index: a first page of another kind raises here, and only here.
SELECT 1 FROM {table} INDEXED BY {index} LIMIT 1;

-- name: first-entry-of-some
-- The same of an index of some rows only: it is used where they are asked for by its own condition.
SELECT 1 FROM {table} INDEXED BY {index} WHERE {condition} LIMIT 1;

-- name: indexes
-- Each index, of one table or of all: its table, its name and the text that made it, NULL for one of a key.
SELECT tbl_name, name, sql
  FROM sqlite_schema
 WHERE type = 'index' AND :table IN ('', tbl_name)
 ORDER BY tbl_name, name;

-- name: names-lost-row
-- Whether an index names a row that its table does not have, by an entry that begins with a value as its first column takes.
SELECT EXISTS (
    SELECT 1
      FROM {table} AS i INDEXED BY {index}
     WHERE instr(:types, typeof(i.{column})) > 0
       AND NOT EXISTS (SELECT 1 FROM {table} AS t NOT INDEXED WHERE t.rowid = i.rowid)
);

-- name: has-odd-row
-- Whether the table has a row with a value that its key cannot have.
SELECT EXISTS (SELECT 1 FROM {table} AS t NOT INDEXED WHERE instr(:types, typeof(t.{column})) = 0);

-- name: owner
-- The table or index that a page belongs to.
SELECT name FROM dbstat WHERE name IN (SELECT value FROM json_each(:names)) AND pageno = :page LIMIT 1;

-- name: first-column
-- The first column of an index, and whether numbers are kept in it.
SELECT c.name, c.type LIKE '%INT%' OR c.type LIKE '%REAL%'
  FROM pragma_index_info(:index) AS x
  JOIN pragma_table_info(:table) AS c ON c.cid = x.cid
 WHERE x.seqno = 0;
