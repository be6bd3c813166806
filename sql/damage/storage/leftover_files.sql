-- Nothing of this class is asked of SQLite by the tool: files are listed. For an operator with the sqlite3 shell and a COPY of a
-- leftover.

-- name: rows-seen
-- One row: how many messages the copy holds, and the newest id. Compare it with the store.
SELECT count(*) AS messages, max(id) AS newest
  FROM messages;
