-- Rows that point at rows which were lost: run by hermes_dbtools/salvage/parents.py on the new file, never on a store.
-- {table} has the key, {column} is the column that points, {parent} and {key} are what it points at.

-- name: latest
-- The latest start of a session that can be a time, else the latest time of a message: when a session without any time
-- of its own is said to have begun.
SELECT coalesce((SELECT max(s.started_at) FROM sessions AS s
                  WHERE typeof(s.started_at) IN ('integer', 'real') AND s.started_at > 0 AND s.started_at < 4.2e9),
                (SELECT max(m.timestamp) FROM messages AS m
                  WHERE typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9));

-- name: dangling
-- How many rows of a table point at a row that is not there.
SELECT count(*)
  FROM {table} AS c
 WHERE c.{column} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE p.{key} = c.{column});

-- name: recover
-- The sessions that rows of a table point at and that are not there, marked as recovered, without what only their own row
-- knew. One that its user deleted, or whose id is no text, is not made again.
INSERT OR IGNORE INTO sessions (id, source, started_at)
SELECT DISTINCT c.{column}, 'recovered', :started_at
  FROM {table} AS c
 WHERE typeof(c.{column}) = 'text'
   AND NOT utf8_broken(CAST(c.{column} AS BLOB))
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = c.{column})
   AND NOT EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || c.{column})
 ORDER BY c.{column};

-- name: recover-parent
-- The lost parent of the run of a sub-agent or tool: without it the run would stand among the chats.
INSERT OR IGNORE INTO sessions (id, source, started_at)
SELECT c.parent_session_id, 'recovered', c.started_at
  FROM sessions AS c
 WHERE c.id = CAST(:id AS TEXT)
   AND typeof(c.parent_session_id) = 'text'
   AND NOT utf8_broken(CAST(c.parent_session_id AS BLOB))
   AND NOT EXISTS (SELECT 1 FROM state_meta AS t
                    WHERE t.key = 'gateway.retired_session.v1.' || c.parent_session_id);

-- name: unpoint
-- Rows that point at a row which is lost for good point at none.
UPDATE {table}
   SET {column} = NULL
 WHERE {column} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE p.{key} = {table}.{column});

-- name: leave-out
-- Rows that may not be without a row which is lost for good are left out.
DELETE FROM {table}
 WHERE {column} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE p.{key} = {table}.{column});

-- name: violations
-- How many rows break a declared foreign key.
SELECT count(*) FROM pragma_foreign_key_check;
