-- What `explain` asks about sessions, whether they have a row or not. Ids come as one JSON array, :ids.

-- name: standing
-- needs: sessions.archived
-- One row per id that has a session row: id, end, reason of the end, source, whether it is archived.
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       CAST(s.end_reason AS BLOB), CAST(s.source AS BLOB), s.archived
  FROM json_each(:ids) AS j
 INNER JOIN sessions AS s ON s.id = j.value
 ORDER BY j.key;

-- name: standing
-- The same for files that archive nothing.
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       CAST(s.end_reason AS BLOB), CAST(s.source AS BLOB), 0
  FROM json_each(:ids) AS j
 INNER JOIN sessions AS s ON s.id = j.value
 ORDER BY j.key;

-- name: rows-of
-- A template: one row per id that a column of a table names: id, how many rows.
SELECT CAST(t.{column} AS BLOB), count(*)
  FROM {table} AS t
 WHERE t.{column} IN (SELECT j.value FROM json_each(:ids) AS j)
 GROUP BY t.{column}
 ORDER BY t.{column};

-- name: routes
-- needs: gateway_routing.entry_json
-- One row per id that chats are routed to: id, how many routes.
SELECT CAST(r.id AS BLOB), count(*)
  FROM (SELECT CASE WHEN typeof(entry_json) = 'text' AND json_valid(entry_json)
                    THEN json_extract(entry_json, '$.session_id') END AS id
          FROM gateway_routing) AS r
 WHERE r.id IN (SELECT j.value FROM json_each(:ids) AS j)
 GROUP BY r.id
 ORDER BY r.id;

-- name: settings
-- One row per id that settings are kept under: id, how many; the last column says whether one of them is a tombstone.
SELECT CAST(j.value AS BLOB), count(*), max(p.value = 'gateway.retired_session.v1.')
  FROM json_each(:ids) AS j
 CROSS JOIN json_each('["goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.local_policy.v1:",
                        "gateway.retired_session.v1."]') AS p
 INNER JOIN state_meta AS k ON k.key = p.value || j.value
 GROUP BY j.value
 ORDER BY j.key;

-- name: broken-keys
-- A template: one row per session of which a column names a row that is gone: id, and what it names.
SELECT CAST(s.id AS BLOB), CAST(s.{column} AS BLOB)
  FROM sessions AS s
 WHERE s.id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND s.{column} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE p.{key} = s.{column})
 ORDER BY s.id;

-- name: like-row
-- Up to two ids of sessions from :word up to :next.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.id BETWEEN :word AND :next ORDER BY s.id LIMIT 2;

-- name: like-trace
-- Ids from :word up to :next that messages, children, tombstones or settings name.
SELECT CAST(m.session_id AS BLOB) FROM messages AS m WHERE m.session_id BETWEEN :word AND :next
 UNION
SELECT CAST(c.parent_session_id AS BLOB) FROM sessions AS c WHERE c.parent_session_id BETWEEN :word AND :next
 UNION
SELECT CAST(substr(k.key, length(p.value) + 1) AS BLOB)
  FROM json_each('["goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.local_policy.v1:",
                   "gateway.retired_session.v1."]') AS p
 CROSS JOIN state_meta AS k ON k.key BETWEEN p.value || :word AND p.value || :next
 ORDER BY 1;

-- name: like-route
-- needs: gateway_routing.entry_json
-- Ids from :word up to :next that chats are routed to.
SELECT DISTINCT CAST(r.id AS BLOB)
  FROM (SELECT CASE WHEN typeof(entry_json) = 'text' AND json_valid(entry_json)
                    THEN json_extract(entry_json, '$.session_id') END AS id
          FROM gateway_routing) AS r
 WHERE r.id BETWEEN :word AND :next
 ORDER BY 1;

-- name: like-named
-- A template: ids from :word up to :next that a column of a table names.
SELECT DISTINCT CAST(t.{column} AS BLOB) FROM {table} AS t WHERE t.{column} BETWEEN :word AND :next ORDER BY 1;

-- name: present
-- One row per session of which the id begins with one of a list; asked of other profiles.
SELECT CAST(s.id AS BLOB)
  FROM json_each(:ids) AS j
 INNER JOIN sessions AS s ON s.id BETWEEN j.value AND j.value || char(1114111)
 ORDER BY s.id;
