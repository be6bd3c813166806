-- Questions of the scan itself.

-- name: message-total
-- How many messages the file holds; counted over an index or the table, whichever SQLite finds smaller.
SELECT COUNT(*) FROM messages;

-- name: forget-index
-- Takes one damaged index out of a private copy, so that no question is answered through it.
DELETE FROM sqlite_schema WHERE type = 'index' AND name = :name;
