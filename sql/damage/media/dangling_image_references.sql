-- References to media files: in admissions, in messages.media_content, in texts. Whether a file is there is not a
-- question for SQL; these blocks give the paths and take dead ones out.

-- name: admissions
-- needs: session_admissions.payload_json
-- One row per admission that may hold files: its three lists as one JSON array, and the prompt of a hosted one that
-- is not terminal. Payloads hold whole images in base64, so only these parts leave SQLite.
SELECT seq,
       CAST(target_session_id AS BLOB),
       status IS 'terminal',
       CAST(json_extract(payload, '$.api_turn_v1.media', '$.attachments_v1.media', '$.native_text_v1.media') AS BLOB),
       CASE WHEN status IS NOT 'terminal' AND request_id LIKE 'hosted:%' AND json_type(payload, '$.text') = 'text'
            THEN CAST(json_extract(payload, '$.text') AS BLOB) END
  FROM (SELECT seq, target_session_id, status, request_id, CAST(payload_json AS TEXT) AS payload
          FROM session_admissions NOT INDEXED)
 WHERE CASE WHEN status IS 'terminal' THEN instr(payload, '"api_turn_v1"') AND instr(payload, '"media"')
            ELSE instr(payload, '"media"') OR instr(payload, '[Shared attachment]') END
   AND json_valid(payload)
 ORDER BY seq;

-- name: texts
-- needs: messages.media_content messages.display_metadata messages.api_content
-- One row per asked-for message: what it says, what repeats it, and version and images of its media_content.
SELECT m.id,
       CAST(m.session_id AS BLOB),
       m.active IS NOT 0,
       CASE WHEN typeof(m.timestamp) IN ('integer', 'real') THEN m.timestamp END,
       CASE WHEN m.active IS NOT 0 AND json_valid(m.media_content)
            THEN CAST(json_extract(m.media_content, '$.version', '$.images') AS BLOB) END,
       CAST(m.content AS BLOB),
       CAST(m.tool_calls AS BLOB),
       CAST(m.api_content AS BLOB),
       CAST(m.display_metadata AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: texts
-- needs: messages.display_metadata messages.api_content messages.active
-- The same for files whose messages have no column of their own for images.
SELECT m.id,
       CAST(m.session_id AS BLOB),
       m.active IS NOT 0,
       CASE WHEN typeof(m.timestamp) IN ('integer', 'real') THEN m.timestamp END,
       NULL,
       CAST(m.content AS BLOB),
       CAST(m.tool_calls AS BLOB),
       CAST(m.api_content AS BLOB),
       CAST(m.display_metadata AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: texts
-- needs: messages.active
-- The same for older files; what a text repeats elsewhere is left alone.
SELECT m.id,
       CAST(m.session_id AS BLOB),
       m.active IS NOT 0,
       CASE WHEN typeof(m.timestamp) IN ('integer', 'real') THEN m.timestamp END,
       NULL,
       CAST(m.content AS BLOB),
       CAST(m.tool_calls AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: texts
-- The same for files older than the active flag: every row is active.
SELECT m.id,
       CAST(m.session_id AS BLOB),
       1,
       CASE WHEN typeof(m.timestamp) IN ('integer', 'real') THEN m.timestamp END,
       NULL,
       CAST(m.content AS BLOB),
       CAST(m.tool_calls AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: drop-held
-- needs: session_admissions.payload_json
-- Take the named paths out of the API images of one session's settled admissions from :first to :last; what else the
-- lists hold stays as it is and in order.
UPDATE session_admissions
   SET payload_json = json_set(payload_json, '$.api_turn_v1.media', json((
           SELECT json_group_array(json(payload_json -> kept.fullkey) ORDER BY kept.key)
             FROM json_each(payload_json, '$.api_turn_v1.media') AS kept
            WHERE NOT EXISTS (
                  SELECT 1
                    FROM json_each(CAST(:paths AS TEXT)) AS gone
                   WHERE gone.value = CASE WHEN kept.type = 'object' THEN kept.value ->> '$.path' END))))
 WHERE target_session_id = CAST(:session AS TEXT)
   AND seq BETWEEN :first AND :last
   AND status = 'terminal'
   AND json_valid(payload_json)
   AND EXISTS (
       SELECT 1
         FROM json_each(payload_json, '$.api_turn_v1.media') AS held
        INNER JOIN json_each(CAST(:paths AS TEXT)) AS gone
           ON gone.value = CASE WHEN held.type = 'object' THEN held.value ->> '$.path' END);

-- name: drop-transcript
-- needs: messages.media_content
-- Let active messages of one session fall back to their text: the named ones whose images need a missing file.
UPDATE messages
   SET media_content = NULL
 WHERE id IN (SELECT named.value FROM json_each(CAST(:ids AS TEXT)) AS named)
   AND session_id = CAST(:session AS TEXT)
   AND active IS NOT 0
   AND json_valid(media_content)
   AND EXISTS (
       SELECT 1
         FROM json_each(media_content, '$.images') AS image
        INNER JOIN json_each(CAST(:digests AS TEXT)) AS gone
           ON gone.value = CASE WHEN image.type = 'object' THEN image.value ->> '$.sha256' END
           OR gone.value = CASE WHEN image.type = 'object' THEN image.value ->> '$.encoded_sha256' END);
