-- Messages that say nothing, and placeholders. Which messages are suspects the content pass says.

-- name: suspects
-- needs: messages.active messages.api_content messages.display_kind messages.media_content
-- One row per asked-for message that is active: its id, whether the assistant said it, what it says, and whether it carries
-- anything else that a model or a reader gets.
SELECT m.id, m.role = 'assistant', CAST(m.content AS BLOB),
       trim(concat(m.reasoning, m.reasoning_content, m.reasoning_details, m.codex_reasoning_items,
                   m.codex_message_items, m.api_content, m.display_kind, m.media_content)) <> ''
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE m.active IS NOT 0
 ORDER BY m.id;

-- name: suspects
-- needs: messages.active messages.api_content messages.display_kind
-- The same for files whose messages have no column of their own for images.
SELECT m.id, m.role = 'assistant', CAST(m.content AS BLOB),
       trim(concat(m.reasoning, m.reasoning_content, m.reasoning_details, m.codex_reasoning_items,
                   m.codex_message_items, m.api_content, m.display_kind)) <> ''
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE m.active IS NOT 0
 ORDER BY m.id;

-- name: suspects
-- needs: messages.active messages.api_content
-- The same for files that show every message.
SELECT m.id, m.role = 'assistant', CAST(m.content AS BLOB),
       trim(concat(m.reasoning, m.reasoning_content, m.reasoning_details, m.codex_reasoning_items,
                   m.codex_message_items, m.api_content)) <> ''
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE m.active IS NOT 0
 ORDER BY m.id;

-- name: suspects
-- needs: messages.active
-- The same for older files.
SELECT m.id, m.role = 'assistant', CAST(m.content AS BLOB),
       trim(concat(m.reasoning, m.reasoning_content, m.reasoning_details, m.codex_reasoning_items,
                   m.codex_message_items)) <> ''
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE m.active IS NOT 0
 ORDER BY m.id;

-- name: suspects
-- The same for files older than the active flag: every row is active.
SELECT m.id, m.role = 'assistant', CAST(m.content AS BLOB),
       trim(concat(m.reasoning, m.reasoning_content, m.reasoning_details, m.codex_reasoning_items,
                   m.codex_message_items)) <> ''
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: end
-- needs: messages.active
-- The last active message of one session.
SELECT max(m.id)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role IN ('user', 'assistant', 'tool')
   AND m.active IS NOT 0;

-- name: end
-- The same for files older than the active flag: every row is active.
SELECT max(m.id)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role IN ('user', 'assistant', 'tool');

-- name: set-aside
-- needs: messages.active
-- Takes the named messages of one session out of the live context, as a rewind does.
UPDATE messages
   SET active = 0
 WHERE id IN (SELECT named.value FROM json_each(CAST(:ids AS TEXT)) AS named)
   AND session_id = CAST(:session AS TEXT)
   AND role IN ('user', 'assistant')
   AND tool_calls IS NULL
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
