-- Statements of apply and undo that belong to no damage class. {places} are filled with names that the file itself has.

-- name: key-of-row
-- The primary key of one row, as bytes: what survives when the row is deleted and comes back.
SELECT {key} FROM {table} WHERE rowid = :rowid;

-- name: null-key
-- One row when some primary key value of the table is NULL: SQLite's recorder passes over such rows.
SELECT 1 FROM {table} WHERE {column} IS NULL LIMIT 1;

-- name: count
-- How many rows a table has.
SELECT COUNT(*) FROM {table};

-- name: mark
-- The word that says, in the database itself, what became of a receipt: it commits together with the rows.
INSERT INTO state_meta (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: marked
-- What became of a receipt, as far as the database knows.
SELECT CAST(value AS BLOB) FROM state_meta WHERE key = :key;

-- name: touched-table
-- The ids of messages that a plan or an undo touches; search upkeep reads them.
CREATE TEMP TABLE IF NOT EXISTS touched_messages (id INTEGER PRIMARY KEY);

-- name: forget-touched
-- Starts the list of touched messages anew.
DELETE FROM temp.touched_messages;

-- name: touch
-- Adds messages to the list; the ids come as an array.
INSERT OR IGNORE INTO temp.touched_messages (id) SELECT value FROM carray(:ids);

-- name: regrouped-table
-- The ids of messages that stay while their session comes or goes; search upkeep reads them.
CREATE TEMP TABLE IF NOT EXISTS regrouped_messages (id INTEGER PRIMARY KEY);

-- name: forget-regrouped
-- Starts that list anew.
DELETE FROM temp.regrouped_messages;

-- name: regroup
-- Adds the messages of one session to it, but for those that go or come themselves.
INSERT OR IGNORE INTO temp.regrouped_messages (id)
SELECT m.id
  FROM messages AS m
 WHERE m.session_id = CAST(:id AS TEXT)
   AND m.id NOT IN (SELECT t.id FROM temp.touched_messages AS t);

-- name: drop-trigger
-- Takes a trigger out for the time of an undo; its own text brings it back.
DROP TRIGGER {trigger};

-- name: drop-index
-- Takes an index away that a repair made; the rows stay.
DROP INDEX {index};

-- name: schema-object
-- The index or trigger of a name: which of both, its table and the text that made it.
SELECT type, tbl_name, sql
  FROM sqlite_schema
 WHERE name = :name AND type IN ('index', 'trigger');
