-- Images in messages that do not decode. Which messages hold images the content pass says; whether one decodes is no question
-- for SQL.

-- name: placeholder
-- Puts a line of text in the place of images in one message of several parts: :edits lists paths and parts, and at each
-- path must be a part. The content stands behind a NUL byte and a mark of five letters.
WITH RECURSIVE
  edited(number, body) AS (
    SELECT 0, CAST(substr(CAST(m.content AS BLOB), 7) AS TEXT)
      FROM messages AS m
     WHERE m.id = :first
    UNION ALL
    SELECT edited.number + 1,
           json_set(edited.body, json_extract(:edits, '$[' || edited.number || '][0]'),
                    json(json_extract(:edits, '$[' || edited.number || '][1]')))
      FROM edited
     WHERE edited.number < json_array_length(:edits))
UPDATE messages
   SET content = (SELECT char(0) || 'json:' || edited.body
                    FROM edited
                   WHERE edited.number = json_array_length(:edits))
 WHERE id BETWEEN :first AND :last
   AND session_id = CAST(:session AS TEXT)
   AND json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))
   AND NOT EXISTS (
       SELECT 1
         FROM json_each(:edits) AS edit
        WHERE json_type(CAST(substr(CAST(messages.content AS BLOB), 7) AS TEXT), json_extract(edit.value, '$[0]'))
              IS NOT 'object');

-- name: placeholder-rows
-- One row: the message that `placeholder` would change, and its bytes.
SELECT m.id, octet_length(m.content)
  FROM messages AS m
 WHERE m.id BETWEEN :first AND :last
   AND m.session_id = CAST(:session AS TEXT)
 ORDER BY m.id;
