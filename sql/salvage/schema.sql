-- The schema of a store that is made anew: run by hermes_dbtools/salvage.

-- name: objects
-- One row per object that a statement made, in the order in which they were made.
SELECT type, name, tbl_name, sql
  FROM sqlite_schema
 WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
 ORDER BY rowid;

-- name: attach
-- The private copy beside the new file.
ATTACH DATABASE :uri AS damaged;

-- name: object-of-copy
-- One object of the private copy, where its pages are; SQLite reads the text when the copy is opened next.
INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (:kind, :name, :table, :root, :sql);

-- name: objects-of-copy
-- The tables of the copy: asked to see whether SQLite can read all of its schema.
SELECT name FROM pragma_table_list WHERE schema = 'main' ORDER BY name;

-- name: touch-all
-- Every message belongs into the search indexes.
INSERT INTO temp.touched_messages (id) SELECT id FROM main.messages ORDER BY id;

-- name: detach
-- The copy is not needed any more.
DETACH DATABASE damaged;

-- name: text-of-table
-- The text of a table, as SQLite keeps it after columns were added.
SELECT sql FROM sqlite_schema WHERE name = :table;

-- name: add-column
-- A column as the store's upgrades add it: type, NOT NULL and default only ({rule}).
ALTER TABLE {table} ADD COLUMN {column} {rule};
