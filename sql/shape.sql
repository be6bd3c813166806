-- What a file has: read by hermes_dbtools/shape.py before anything else is asked.

-- name: objects
-- One row per object of the schema: its kind, name, table, root page and the text that made it.
SELECT type, name, tbl_name, rootpage, sql
  FROM sqlite_schema
 ORDER BY type, name;

-- name: kinds
-- One row per table: what SQLite takes it for (table, shadow, virtual, view) and whether it has no rowid.
SELECT name, type, wr
  FROM pragma_table_list
 WHERE schema = 'main'
 ORDER BY name;

-- name: version
-- The number that the last migrating open stamped.
SELECT version FROM schema_version LIMIT 1;

-- name: mark
-- The value of one search mark, as bytes: it may not be UTF-8 in a damaged file.
SELECT CAST(value AS BLOB) FROM state_meta WHERE key = :key;
