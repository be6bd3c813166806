-- What `sessions show` and `sessions export` say of one session and its family.

-- name: titled
-- Up to two sessions with a title.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.title = :title ORDER BY s.id LIMIT 2;

-- name: family
-- One row per session that is connected with one through parents: id, parent, and the ids that its three markers name. UNION ends a loop.
WITH RECURSIVE members (id) AS (
    SELECT CAST(:id AS TEXT)
     UNION
    SELECT s.parent_session_id
      FROM members CROSS JOIN sessions AS s ON s.id = members.id
     WHERE s.parent_session_id IS NOT NULL
     UNION
    SELECT c.id
      FROM members CROSS JOIN sessions AS c ON c.parent_session_id = members.id
     WHERE c.id IS NOT NULL
)
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CAST(json_extract(s.config, '$._branched_from') AS BLOB),
       CAST(json_extract(s.config, '$._reset_from') AS BLOB),
       CAST(json_extract(s.config, '$._delegate_from') AS BLOB)
  FROM members
 INNER JOIN (SELECT id, parent_session_id,
                    CASE WHEN typeof(model_config) = 'text' AND json_valid(model_config) THEN model_config ELSE '{}' END AS config
               FROM sessions) AS s ON s.id = members.id
 ORDER BY s.id;

-- name: rows-of
-- A template: how many rows of a table name a session in one of its columns, and the bytes of what they hold.
SELECT count(*), total(octet_length(concat({columns}))) FROM {table} AS t WHERE t.{column} = CAST(:id AS TEXT);

-- name: settings
-- One row per setting that is kept under the session's id: its key up to the id, and its bytes.
SELECT p.value, octet_length(k.value)
  FROM json_each('["goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.local_policy.v1:",
                   "gateway.retired_session.v1."]') AS p
 INNER JOIN state_meta AS k ON k.key = p.value || :id
 ORDER BY p.key;

-- name: admissions
-- needs: session_admissions.payload_json
-- One row per admission of the session that may name files: its number, whether it is settled, its three lists as one JSON array.
SELECT a.seq, a.status IS 'terminal',
       CAST(json_extract(a.payload_json, '$.api_turn_v1.media', '$.attachments_v1.media', '$.native_text_v1.media') AS BLOB)
  FROM session_admissions AS a
 WHERE a.target_session_id = CAST(:id AS TEXT)
   AND instr(a.payload_json, '"media"')
   AND json_valid(a.payload_json)
 ORDER BY a.seq;

-- name: images
-- needs: messages.media_content
-- One row per message of the session that needs or mentions files: id, version and images of its media_content, and its text.
SELECT m.id,
       CASE WHEN json_valid(m.media_content) THEN CAST(json_extract(m.media_content, '$.version', '$.images') AS BLOB) END,
       CAST(m.content AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:id AS TEXT)
   AND (m.media_content IS NOT NULL OR instr(m.content, '[Image attached') OR instr(m.content, '@image:'))
 ORDER BY m.id;

-- name: images
-- The same for files whose messages have no column of their own for images.
SELECT m.id, NULL, CAST(m.content AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:id AS TEXT)
   AND (instr(m.content, '[Image attached') OR instr(m.content, '@image:'))
 ORDER BY m.id;

-- name: routes
-- needs: gateway_routing.entry_json
-- How many chat routes lead to a session, and their bytes.
SELECT count(*), total(octet_length(r.entry_json))
  FROM gateway_routing AS r
 WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json) THEN json_extract(r.entry_json, '$.session_id') END = :id;
