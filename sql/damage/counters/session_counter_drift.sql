-- What a session says it holds against the rows it holds. Values of damaged type come back as NULL, their type beside them.

-- name: find
-- needs: messages.active sessions.rewind_count index:idx_messages_session_active
-- One row per session: its two counters and their types, how often it was rewound, its active rows, rows without flag, all rows.
SELECT CAST(s.id AS BLOB),
       typeof(s.message_count), CASE WHEN typeof(s.message_count) = 'integer' THEN s.message_count END,
       typeof(s.tool_call_count), CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END,
       CASE WHEN typeof(s.rewind_count) = 'integer' THEN s.rewind_count ELSE 0 END,
       coalesce(held.active_rows, 0), coalesce(held.unflagged_rows, 0), coalesce(held.all_rows, 0)
  FROM sessions AS s
  LEFT JOIN (SELECT m.session_id, total(m.active = 1) AS active_rows, total(m.active IS NULL) AS unflagged_rows,
                    count(*) AS all_rows
               FROM messages AS m INDEXED BY idx_messages_session_active
              GROUP BY m.session_id) AS held
    ON held.session_id = s.id
 WHERE typeof(s.id) = 'text'
 ORDER BY s.id;

-- name: find
-- needs: messages.active sessions.rewind_count
-- The same without the index over session and flag.
SELECT CAST(s.id AS BLOB),
       typeof(s.message_count), CASE WHEN typeof(s.message_count) = 'integer' THEN s.message_count END,
       typeof(s.tool_call_count), CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END,
       CASE WHEN typeof(s.rewind_count) = 'integer' THEN s.rewind_count ELSE 0 END,
       coalesce(held.active_rows, 0), coalesce(held.unflagged_rows, 0), coalesce(held.all_rows, 0)
  FROM sessions AS s
  LEFT JOIN (SELECT m.session_id, total(m.active = 1) AS active_rows, total(m.active IS NULL) AS unflagged_rows,
                    count(*) AS all_rows
               FROM messages AS m NOT INDEXED
              GROUP BY m.session_id) AS held
    ON held.session_id = s.id
 WHERE typeof(s.id) = 'text'
 ORDER BY s.id;

-- name: find
-- needs: messages.active
-- The same for a file that has lost its count of rewinds.
SELECT CAST(s.id AS BLOB),
       typeof(s.message_count), CASE WHEN typeof(s.message_count) = 'integer' THEN s.message_count END,
       typeof(s.tool_call_count), CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END,
       0, coalesce(held.active_rows, 0), coalesce(held.unflagged_rows, 0), coalesce(held.all_rows, 0)
  FROM sessions AS s
  LEFT JOIN (SELECT m.session_id, total(m.active = 1) AS active_rows, total(m.active IS NULL) AS unflagged_rows,
                    count(*) AS all_rows
               FROM messages AS m NOT INDEXED
              GROUP BY m.session_id) AS held
    ON held.session_id = s.id
 WHERE typeof(s.id) = 'text'
 ORDER BY s.id;

-- name: find
-- needs: !messages.active index:idx_messages_session
-- The same for files older than the active flag: every row is active.
SELECT CAST(s.id AS BLOB),
       typeof(s.message_count), CASE WHEN typeof(s.message_count) = 'integer' THEN s.message_count END,
       typeof(s.tool_call_count), CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END,
       0, coalesce(held.all_rows, 0), 0, coalesce(held.all_rows, 0)
  FROM sessions AS s
  LEFT JOIN (SELECT m.session_id, count(*) AS all_rows
               FROM messages AS m INDEXED BY idx_messages_session
              GROUP BY m.session_id) AS held
    ON held.session_id = s.id
 WHERE typeof(s.id) = 'text'
 ORDER BY s.id;

-- name: find
-- needs: !messages.active
-- The same for files older than the active flag, without the index over sessions.
SELECT CAST(s.id AS BLOB),
       typeof(s.message_count), CASE WHEN typeof(s.message_count) = 'integer' THEN s.message_count END,
       typeof(s.tool_call_count), CASE WHEN typeof(s.tool_call_count) = 'integer' THEN s.tool_call_count END,
       0, coalesce(held.all_rows, 0), 0, coalesce(held.all_rows, 0)
  FROM sessions AS s
  LEFT JOIN (SELECT m.session_id, count(*) AS all_rows
               FROM messages AS m NOT INDEXED
              GROUP BY m.session_id) AS held
    ON held.session_id = s.id
 WHERE typeof(s.id) = 'text'
 ORDER BY s.id;

-- name: suspect
-- needs: messages.compacted
-- One row about a session whose counters differ: rows both active and compacted (a restore leaves them), compacted rows, rows
-- without flag that a compaction set aside, and call lists that are no list (older stores count each as one, newer as none).
SELECT total(m.active = 1 AND m.compacted = 1), total(m.compacted = 1), total(m.active IS NULL AND m.compacted = 1),
       total(CASE WHEN json_valid(m.tool_calls) THEN json_type(m.tool_calls) <> 'array' END)
  FROM messages AS m
 WHERE m.session_id = CAST(:session_id AS TEXT);

-- name: suspect
-- The same for files older than compaction in place.
SELECT 0.0, 0.0, 0.0,
       total(CASE WHEN json_valid(m.tool_calls) THEN json_type(m.tool_calls) <> 'array' END)
  FROM messages AS m
 WHERE m.session_id = CAST(:session_id AS TEXT);

-- name: repair-messages
-- Sets the number of messages of one session.
UPDATE sessions
   SET message_count = :message_count
 WHERE id = CAST(:session_id AS TEXT)
   AND message_count IS NOT :message_count;

-- name: repair-calls
-- Sets the number of tool calls of one session.
UPDATE sessions
   SET tool_call_count = :tool_call_count
 WHERE id = CAST(:session_id AS TEXT)
   AND tool_call_count IS NOT :tool_call_count;

-- name: repair-both
-- Sets both numbers of one session.
UPDATE sessions
   SET message_count = :message_count, tool_call_count = :tool_call_count
 WHERE id = CAST(:session_id AS TEXT)
   AND message_count IS NOT :message_count
   AND tool_call_count IS NOT :tool_call_count;
