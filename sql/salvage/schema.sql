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

-- name: objects-of-copy
-- How many objects the schema of the copy has: asked to see whether SQLite can read it.
SELECT count(*) FROM damaged.sqlite_schema;

-- name: touch-all
-- Every message belongs into the search indexes.
INSERT INTO temp.touched_messages (id) SELECT id FROM main.messages ORDER BY id;
