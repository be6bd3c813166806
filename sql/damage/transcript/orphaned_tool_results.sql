-- Calls against which results are held, and results without one set aside. Which results are suspects the content pass says.

-- name: calls
-- The lists of calls of one session, of inactive messages too.
SELECT CAST(m.tool_calls AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.tool_calls IS NOT NULL;

-- name: set-aside
-- needs: messages.active
-- Takes the named results of one session out of the live context, as a rewind does.
UPDATE messages
   SET active = 0
 WHERE id IN (SELECT named.value FROM json_each(CAST(:ids AS TEXT)) AS named)
   AND session_id = CAST(:session AS TEXT)
   AND role = 'tool'
   AND tool_call_id <> ''
   AND active IS NOT 0;

-- name: recount
-- needs: messages.active
-- Sets the number of messages of one session afterwards: its active ones; all where none is active, for a sweep would delete
-- a session that counts none.
UPDATE sessions
   SET message_count = (SELECT coalesce(nullif(count(*) FILTER (WHERE m.active = 1), 0), count(*))
                          FROM messages AS m
                         WHERE m.session_id = sessions.id)
 WHERE id = CAST(:session AS TEXT);
