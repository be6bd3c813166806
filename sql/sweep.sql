-- The one pass over message content. LIKE and GLOB are many times faster than instr but end at a NUL byte, so rows
-- that hold one (format stops there, octet_length does not) are searched with instr.

-- name: suspects
-- needs: messages.active messages.media_content
-- One row per message that has tool calls (their number; -1 where the list is not JSON), may name a file or has a flaw: 1 for text
-- that is not UTF-8, 2 for a time outside the years 1970 to 2103, 4 for JSON that is none. The values of all JSON columns are one
-- object there: parsing them one by one would need a statement for each shape.
SELECT id, CAST(session_id AS BLOB), active IS NOT 0, calls, mentions, flaws
  FROM (SELECT id, session_id, active,
               CASE WHEN tool_calls IS NULL THEN 0
                    WHEN NOT json_valid(tool_calls) THEN -1
                    WHEN json_type(tool_calls) = 'array' THEN json_array_length(tool_calls)
                    ELSE 1 END AS calls,
               media_content IS NOT NULL
               OR content LIKE '%[Image attached%' OR content LIKE '%@image:%' OR content LIKE '%@file:%'
               OR content GLOB '*MEDIA:*'
               OR CASE WHEN octet_length(format('%s', content)) < octet_length(content)
                       THEN instr(content, '[Image attached') OR instr(content, '@image:')
                            OR instr(content, '@file:') OR instr(content, 'MEDIA:')
                       ELSE 0 END AS mentions,
               utf8_broken(CAST(concat_ws(' ', {text_columns}) AS BLOB))
               + 2 * ((timestamp BETWEEN 1 AND 4200000000) IS NOT TRUE)
               + 4 * (json_valid('{"k":' || nullif(concat_ws(',"k":', {json_columns}), '') || '}') IS 0
                      OR CASE WHEN content >= char(0) || 'json:' AND content < char(0) || 'json;'
                              THEN NOT json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))
                              ELSE 0 END) AS flaws
          FROM messages NOT INDEXED)
 WHERE calls <> 0 OR mentions OR flaws;

-- name: suspects
-- needs: messages.active
-- The same for files whose messages have no column of their own for images.
SELECT id, CAST(session_id AS BLOB), active IS NOT 0, calls, mentions, flaws
  FROM (SELECT id, session_id, active,
               CASE WHEN tool_calls IS NULL THEN 0
                    WHEN NOT json_valid(tool_calls) THEN -1
                    WHEN json_type(tool_calls) = 'array' THEN json_array_length(tool_calls)
                    ELSE 1 END AS calls,
               content LIKE '%[Image attached%' OR content LIKE '%@image:%' OR content LIKE '%@file:%'
               OR content GLOB '*MEDIA:*'
               OR CASE WHEN octet_length(format('%s', content)) < octet_length(content)
                       THEN instr(content, '[Image attached') OR instr(content, '@image:')
                            OR instr(content, '@file:') OR instr(content, 'MEDIA:')
                       ELSE 0 END AS mentions,
               utf8_broken(CAST(concat_ws(' ', {text_columns}) AS BLOB))
               + 2 * ((timestamp BETWEEN 1 AND 4200000000) IS NOT TRUE)
               + 4 * (json_valid('{"k":' || nullif(concat_ws(',"k":', {json_columns}), '') || '}') IS 0
                      OR CASE WHEN content >= char(0) || 'json:' AND content < char(0) || 'json;'
                              THEN NOT json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))
                              ELSE 0 END) AS flaws
          FROM messages NOT INDEXED)
 WHERE calls <> 0 OR mentions OR flaws;

-- name: suspects
-- The same for files older than the active flag: every row is active.
SELECT id, CAST(session_id AS BLOB), 1, calls, mentions, flaws
  FROM (SELECT id, session_id,
               CASE WHEN tool_calls IS NULL THEN 0
                    WHEN NOT json_valid(tool_calls) THEN -1
                    WHEN json_type(tool_calls) = 'array' THEN json_array_length(tool_calls)
                    ELSE 1 END AS calls,
               content LIKE '%[Image attached%' OR content LIKE '%@image:%' OR content LIKE '%@file:%'
               OR content GLOB '*MEDIA:*'
               OR CASE WHEN octet_length(format('%s', content)) < octet_length(content)
                       THEN instr(content, '[Image attached') OR instr(content, '@image:')
                            OR instr(content, '@file:') OR instr(content, 'MEDIA:')
                       ELSE 0 END AS mentions,
               utf8_broken(CAST(concat_ws(' ', {text_columns}) AS BLOB))
               + 2 * ((timestamp BETWEEN 1 AND 4200000000) IS NOT TRUE)
               + 4 * (json_valid('{"k":' || nullif(concat_ws(',"k":', {json_columns}), '') || '}') IS 0
                      OR CASE WHEN content >= char(0) || 'json:' AND content < char(0) || 'json;'
                              THEN NOT json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))
                              ELSE 0 END) AS flaws
          FROM messages NOT INDEXED)
 WHERE calls <> 0 OR mentions OR flaws;
