-- A message made up in memory, to see what the triggers of an index do with it: run by hermes_dbtools/search_feeding.py.
-- {…} stands for quoted identifiers of the file's own schema.

-- name: session
-- The session of the message.
INSERT INTO sessions (id, source, started_at) VALUES ('made up', 'cli', 1.0);

-- name: insert
-- The message comes in.
INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (1, 'made up', 'user', :text, 1.0);

-- name: update
-- The message gets another text.
UPDATE messages SET content = :text WHERE id = 1;

-- name: delete
-- The message goes.
DELETE FROM messages WHERE id = 1;

-- name: entries
-- The messages that the index has an entry of.
SELECT id FROM {docsize} ORDER BY id;

-- name: stored
-- What an index that keeps its own copy of the text holds of the message.
SELECT c0 FROM {stored} WHERE id = 1;

-- name: compare
-- FTS5 compares every entry with the text it is made from, and raises where they differ.
INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1);

-- name: empty_stored
-- An index that keeps its own copy of the text holds nothing any more.
DELETE FROM {index};

-- name: fill_stored
-- It holds this text of the message.
INSERT INTO {index} (rowid, content) VALUES (1, :text);

-- name: fill_again
-- An index of text that lies elsewhere is made anew from it.
INSERT INTO {index} ({index}) VALUES ('rebuild');
