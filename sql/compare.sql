-- Reads two stores side by side. {places} are filled with names that the file itself has, {values} with its columns.

-- name: rows-by-id
-- Every row of a table in the order of its id.
SELECT {values} FROM {table} AS t NOT INDEXED ORDER BY t.{key};

-- name: rows-in-order
-- Every row of a table that SQLite keeps in the order of its key, or that has none.
SELECT {values} FROM {table} AS t NOT INDEXED ORDER BY {order};

-- name: put-in-order
-- The places of the rows in the order of their keys, found without an index: a stale one would hide rows.
CREATE TEMP TABLE compare_order AS SELECT t.{row_id} AS place FROM {table} AS t NOT INDEXED ORDER BY {order};

-- name: rows-as-ordered
-- Every row of a table as `put-in-order` has ordered them.
SELECT {values}
  FROM temp.compare_order AS o
 CROSS JOIN {table} AS t NOT INDEXED ON t.{row_id} = o.place
 ORDER BY o.rowid;

-- name: forget-order
-- The order is of no use for the next table.
DROP TABLE IF EXISTS temp.compare_order;

-- name: stored-prompt
-- needs: system_prompts.prompt sessions.system_prompt_hash
-- The prompt that a session names by its hash.
SELECT CAST(p.prompt AS BLOB)
  FROM sessions AS s
 INNER JOIN system_prompts AS p ON p.hash = s.system_prompt_hash
 WHERE s.id = CAST(:id AS TEXT);

-- name: tombstone
-- One row where the session was deleted on purpose.
SELECT 1 FROM state_meta WHERE key = 'gateway.retired_session.v1.' || CAST(:id AS TEXT);

-- name: first-message
-- The first message of a session.
SELECT MIN(m.id) FROM messages AS m WHERE m.session_id = CAST(:id AS TEXT);

-- name: message-there
-- Whether there is a message of this id, of whatever session.
SELECT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = :id);

-- name: message-total
-- needs: index:idx_messages_session
-- How many messages name a session.
SELECT count(*) FROM messages AS m INDEXED BY idx_messages_session WHERE m.session_id = CAST(:id AS TEXT);

-- name: message-total
-- The same where the file lacks the index.
SELECT count(*) FROM messages AS m NOT INDEXED WHERE m.session_id = CAST(:id AS TEXT);

-- name: encoding
-- How the file writes text.
SELECT encoding FROM pragma_encoding;

-- name: row-total
-- How many rows a table has.
SELECT count(*) FROM {table} NOT INDEXED;

-- name: row-count
-- The same by the smallest index, for who may be told a little wrong.
SELECT count(*) FROM {table};
