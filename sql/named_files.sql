-- What still names a file that is about to be moved away: read by hermes_dbtools/named_files.py.

-- name: sessions-there
-- Those of some sessions that have a row.
SELECT i.value
  FROM json_each(:ids) AS i
 WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = i.value)
 ORDER BY i.value;

-- name: message-texts
-- What messages say with a word in it, all their columns that may name a file together.
SELECT said
  FROM (SELECT CAST(concat_ws(' ', {columns}) AS BLOB) AS said FROM messages LIMIT -1)
 WHERE instr(said, CAST(:word AS BLOB));

-- name: admission-texts
-- needs: session_admissions.payload_json
-- The payloads of admissions with a word in them.
SELECT CAST(a.payload_json AS BLOB)
  FROM session_admissions AS a
 WHERE instr(CAST(a.payload_json AS BLOB), CAST(:word AS BLOB))
 ORDER BY a.seq;

-- name: stored-texts
-- The stored values with a word in them, wishes to remove a file apart.
SELECT CAST(k.value AS BLOB)
  FROM state_meta AS k
 WHERE k.key NOT GLOB 'gateway.media.retired.v1.*'
   AND instr(CAST(k.value AS BLOB), CAST(:word AS BLOB))
 ORDER BY k.key;

-- name: held-lists
-- needs: session_admissions.payload_json
-- The three lists of files of each admission that can be read.
SELECT CAST(json_array(json_extract(a.payload_json, '$.api_turn_v1.media'),
                       json_extract(a.payload_json, '$.attachments_v1.media'),
                       json_extract(a.payload_json, '$.native_text_v1.media')) AS BLOB)
  FROM session_admissions AS a
 WHERE CASE WHEN typeof(a.payload_json) = 'text' AND json_valid(a.payload_json)
            THEN instr(a.payload_json, '_v1') END
 ORDER BY a.seq;

-- name: marked-texts
-- What asked-for messages say, all their columns that may name a file together.
SELECT CAST(concat_ws(' ', {columns}) AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;
