-- Taking a full-text index away, also one that FTS5 cannot open, and its marks: run by hermes_dbtools/search_remaking.py.
-- {…} stands for quoted identifiers of the file's own schema.

-- name: drop_table
-- A table that an index was kept in goes, with all its pages.
DROP TABLE {table};

-- name: forget_index
-- An index that cannot be opened leaves the schema; its tables are ordinary ones from then on and go one by one.
DELETE FROM sqlite_schema WHERE type = 'table' AND name = :index AND sql LIKE 'CREATE VIRTUAL TABLE%';

-- name: remove_marks
-- What said that the index is not whole goes with it.
DELETE FROM state_meta WHERE key IN (SELECT value FROM json_each(:keys));

-- name: touch_missing
-- The messages that are not in an index and belong in.
INSERT OR IGNORE INTO temp.touched_messages (id)
SELECT s.{rowid}
  FROM {source} AS s
 WHERE NOT (s.{rowid} > :progress AND s.{rowid} <= :high_water)
   AND NOT EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = s.{rowid});

-- name: touch_left
-- The entries whose message is gone, or that are in too early.
INSERT OR IGNORE INTO temp.touched_messages (id)
SELECT d.id
  FROM {docsize} AS d
 WHERE (d.id > :progress AND d.id <= :high_water)
    OR NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = d.id);
