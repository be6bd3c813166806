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
