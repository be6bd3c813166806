-- The one pass over message content. GLOB and LIKE are many times faster than instr but end at a NUL byte, so text that
-- holds one (format stops there, octet_length does not) is a suspect as it is. GLOB is fast where a pattern begins with a
-- plain character, not with a set in brackets, and best where that is a rare one.

-- name: extent
-- needs: messages.id
-- One row: the first and the last id, between which every other is.
SELECT (SELECT min(id) FROM messages NOT INDEXED) AS first, (SELECT max(id) FROM messages NOT INDEXED) AS last;

-- name: message
-- needs: messages.active messages.media_content
-- A message as every file has it: what a file's messages lack is NULL here, or what it would be.
SELECT * FROM messages NOT INDEXED;

-- name: message
-- needs: messages.active
-- The same for files whose messages have no column of their own for images.
SELECT *, NULL AS media_content FROM messages NOT INDEXED;

-- name: message
-- needs: messages.media_content
-- The same for files that have lost the active flag.
SELECT *, 1 AS active FROM messages NOT INDEXED;

-- name: message
-- The same for files older than the active flag: every row is active.
SELECT *, 1 AS active, NULL AS media_content FROM messages NOT INDEXED;

-- name: suspects
-- with: message
-- One row per message that calls tools, holds the result of a call, or bears a mark: one bit for each name after `:`. A
-- new mark is one more line here. A mark is a suspicion, never a finding. Without the LIMIT, SQLite flattens the inner query
-- and works out all marks twice.
SELECT id, CAST(session_id AS BLOB), live, CAST(tool_calls AS BLOB), CAST(answers AS BLOB), marks
  FROM (SELECT id, session_id, tool_calls, active IS NOT 0 AS live,
               iif(role = 'tool' AND tool_call_id <> '', tool_call_id, NULL) AS answers,
               iif(media_content IS NOT NULL, :reference, 0)
               | iif(octet_length(format('%s', content)) < octet_length(content), :reference | :inline, 0)
               | iif(content GLOB '*@image:*' OR content GLOB '*@file:*' OR content GLOB '*MEDIA:*', :reference, 0)
               | iif(content LIKE '%[Image attached%', :reference, 0)
               | iif(content GLOB '*-[ip][na][ps][ut][te]s*' OR content GLOB '*_media*'
                     OR concat_ws('', {naming_columns}) GLOB '*-[ip][na][ps][ut][te]s*', :naming, 0)
               | iif(content GLOB '*;base64,*' OR content GLOB '*"base64"*', :inline, 0)
               | iif(active IS NOT 0 AND role IN ('user', 'assistant') AND tool_calls IS NULL
                     AND (content IS NULL OR content GLOB 'You just executed tool calls but*'
                          OR octet_length(content) < 80
                             AND (length(content) = 0 OR trim(content, char(9, 10, 13, 32)) IN ('', '(empty)'))),
                     :sentinel, 0)
               | iif(role = 'tool' AND active IS NOT 0 AND tool_call_id <> '' AND coalesce(tool_name, '') = '',
                     :unnamed, 0)
               | iif(tool_name = 'delegate_task' OR tool_calls GLOB '*delegate_task*', :delegating, 0)
               | iif(utf8_broken(CAST(concat_ws(' ', {text_columns}) AS BLOB)), :not_utf8, 0)
               | iif((timestamp BETWEEN 1 AND 4200000000) IS NOT TRUE, :not_a_time, 0)
               | iif(role NOT IN ('user', 'assistant', 'tool', 'system', 'developer', 'session_meta', 'unknown')
                     OR concat_ws('', {flag_columns}) GLOB '*[^01]*'
                     OR (token_count BETWEEN 0 AND 1000000000000) IS FALSE, :out_of_domain, 0)
               | iif(json_valid('{"k":' || nullif(concat_ws(',"k":', {json_columns}), '') || '}') IS 0
                     OR CASE WHEN content >= char(0) || 'json:' AND content < char(0) || 'json;'
                             THEN NOT json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))
                             ELSE 0 END, :not_json, 0) AS marks
          FROM message
         LIMIT -1)
 WHERE marks <> 0 OR tool_calls IS NOT NULL OR answers IS NOT NULL;
