-- What follows a call with broken arguments, and both set aside. Which calls are broken the content pass says.

-- name: order
-- needs: messages.active
-- The active messages of one session in order: id, and whether it is a result.
SELECT m.id, m.role = 'tool'
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.active IS NOT 0
 ORDER BY m.id;

-- name: order
-- The same for files older than the active flag: every row is active.
SELECT m.id, m.role = 'tool'
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
 ORDER BY m.id;

-- name: set-aside
-- needs: messages.active
-- Takes the named messages of one session out of the live context, as a rewind does.
UPDATE messages
   SET active = 0
 WHERE id IN (SELECT named.value FROM json_each(CAST(:ids AS TEXT)) AS named)
   AND session_id = CAST(:session AS TEXT)
   AND (role = 'tool' OR tool_calls IS NOT NULL)
   AND active IS NOT 0;

-- name: recount
-- needs: messages.active
-- Sets both numbers of one session afterwards: of its active messages; of all where none is active, for a sweep would delete
-- a session that counts none. Where a list of calls cannot be read, the number of calls stays.
UPDATE sessions
   SET message_count = (SELECT coalesce(nullif(count(*) FILTER (WHERE m.active = 1), 0), count(*))
                          FROM messages AS m
                         WHERE m.session_id = sessions.id),
       tool_call_count = (SELECT CASE WHEN total(calls IS NULL) > 0 THEN sessions.tool_call_count
                                      WHEN total(active = 1) > 0 THEN coalesce(sum(CASE WHEN active = 1 THEN calls END), 0)
                                      ELSE coalesce(sum(calls), 0) END
                            FROM (SELECT m.active,
                                         CASE WHEN m.tool_calls IS NULL THEN 0
                                              WHEN NOT json_valid(m.tool_calls) THEN NULL
                                              WHEN json_type(m.tool_calls) = 'array'
                                              THEN json_array_length(m.tool_calls)
                                              ELSE 1 END AS calls
                                    FROM messages AS m
                                   WHERE m.session_id = sessions.id))
 WHERE id = CAST(:session AS TEXT);
