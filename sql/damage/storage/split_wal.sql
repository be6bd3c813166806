-- Nothing of this class is asked of SQLite by the tool: opening such a file can lose rows. For an operator with the sqlite3
-- shell and a COPY of database and sidecars.

-- name: rows-seen
-- One row: how many messages this way of opening the file sees, and the newest id. Compare it between copies.
SELECT count(*) AS messages, max(id) AS newest
  FROM messages;
