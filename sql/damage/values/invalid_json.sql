-- Values that a reader of the store parses as JSON and that SQLite does not take for JSON. Python's parser has the last word, for it
-- is the store's: it reads NaN, and this class asks it about every suspect.

-- name: suspects
-- One row per value of one column that is no JSON: row, the session it belongs to, its bytes.
SELECT t.rowid, CAST(t.{owner} AS BLOB), CAST(t.{column} AS BLOB)
  FROM {table} AS t
 WHERE typeof(t.{column}) = 'text'
   AND NOT json_valid(t.{column})
 ORDER BY t.rowid;

-- name: state-values
-- One row per named value of the store that should be JSON by its key and is none. Keys of deleted sessions are left out.
SELECT t.rowid, NULL, CAST(t.{column} AS BLOB)
  FROM {table} AS t
 WHERE typeof(t.{column}) = 'text'
   AND NOT json_valid(t.{column})
   AND (t.key GLOB 'goal:*'
        OR t.key GLOB 'gateway.local_policy.v1:*'
        OR t.key GLOB 'gateway.api.settings.v1.*'
        OR t.key GLOB 'gateway.api.binding.v1.*'
        OR t.key GLOB 'gateway.mutation.v1.*'
        OR t.key GLOB 'gateway.admission.result.v1.*'
        OR t.key GLOB 'gateway.media.retired.v1.*'
        OR t.key = 'gateway.prompt_admissions_import.v1')
 ORDER BY t.rowid;

-- name: message-values
-- One row per named message whose value of one column is no JSON: message, session, its bytes.
SELECT m.id, CAST(m.session_id AS BLOB), CAST(m.{column} AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 WHERE typeof(m.{column}) = 'text'
   AND NOT json_valid(m.{column})
 ORDER BY m.id;

-- name: message-contents
-- The same for content that begins with the mark of a list of parts: what follows the mark.
SELECT m.id, CAST(m.session_id AS BLOB), substr(CAST(m.content AS BLOB), 7)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 WHERE m.content >= char(0) || 'json:' AND m.content < char(0) || 'json;'
   AND NOT json_valid(CAST(substr(CAST(m.content AS BLOB), 7) AS TEXT))
 ORDER BY m.id;

-- name: counter
-- needs: messages.active
-- The tool calls that one session counts (NULL where the number is none), and whether a message of it is active.
SELECT CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END,
       EXISTS (SELECT 1 FROM messages AS m
                WHERE m.session_id = s.id AND coalesce(m.active, 1) = 1)
  FROM sessions AS s
 WHERE s.id = CAST(:session_id AS TEXT);

-- name: counter
-- The same for files older than the active flag.
SELECT CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END, 1
  FROM sessions AS s
 WHERE s.id = CAST(:session_id AS TEXT);

-- name: clear
-- Empties one value of one row; the old one is in the undo file.
UPDATE {table}
   SET {column} = :value
 WHERE rowid = :row
   AND typeof({column}) = 'text'
   AND NOT json_valid({column});

-- name: clear-messages
-- Empties the values of one column of the named messages between two ids.
UPDATE messages
   SET {column} = :value
 WHERE id BETWEEN :first AND :last
   AND id IN (SELECT wanted.value FROM json_each(CAST(:ids AS TEXT)) AS wanted)
   AND typeof({column}) = 'text'
   AND NOT json_valid({column});

-- name: clear-contents
-- Empties the content of the named messages between two ids where it is a broken list of parts.
UPDATE messages
   SET {column} = :value
 WHERE id BETWEEN :first AND :last
   AND id IN (SELECT wanted.value FROM json_each(CAST(:ids AS TEXT)) AS wanted)
   AND {column} >= char(0) || 'json:' AND {column} < char(0) || 'json;'
   AND NOT json_valid(CAST(substr(CAST({column} AS BLOB), 7) AS TEXT));

-- name: message-rows
-- The named messages with the bytes of the value that goes.
SELECT m.id, octet_length(m.{column}) AS bytes
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 ORDER BY m.id;

-- name: recount
-- Sets the number of tool calls of one session.
UPDATE sessions
   SET tool_call_count = :count
 WHERE id = CAST(:session_id AS TEXT)
   AND tool_call_count IS NOT :count;
