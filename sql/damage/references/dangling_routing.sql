-- Chat routes that lead nowhere, or to another chat than the one they are kept under. A session id is compared as text only; an
-- entry that is no JSON object is invalid-json.

-- name: missing
-- needs: session_admissions worker_executions
-- One row per session id that routes name and that has no row: id, routes, those in use, whether it has a tombstone. A deleted
-- session (it has a tombstone, or a branch still names it as its root) is left to branched-root-leftovers.
WITH routes AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS id,
         json_extract(r.entry_json, '$.suspended') IS NOT 1
         AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1 AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
), roots AS MATERIALIZED (
  SELECT json_extract(b.model_config, '$._branched_from') AS id
    FROM sessions AS b
   WHERE CASE WHEN typeof(b.model_config) = 'text' AND json_valid(b.model_config)
              THEN json_type(b.model_config, '$._branched_from') END = 'text'
)
SELECT CAST(r.id AS BLOB), count(*), sum(r.in_use), 0
  FROM routes AS r
 WHERE r.id <> ''
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = r.id)
   AND NOT EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || r.id)
   AND r.id NOT IN (SELECT b.id FROM roots AS b)
 GROUP BY r.id
 ORDER BY r.id;

-- name: missing
-- The same for files without a ledger: a delete of theirs leaves its routes, and nothing else looks at them.
WITH routes AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS id,
         json_extract(r.entry_json, '$.suspended') IS NOT 1
         AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1 AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
)
SELECT CAST(r.id AS BLOB), count(*), sum(r.in_use),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || r.id)
  FROM routes AS r
 WHERE r.id <> ''
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = r.id)
 GROUP BY r.id
 ORDER BY r.id;

-- name: mismatched
-- One row per session that a route names under one chat's key while the entry says another: id, routes, those in use.
WITH routes AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS id,
         json_extract(r.entry_json, '$.suspended') IS NOT 1
         AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1 AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') = 'text' AND json_type(r.entry_json, '$.session_key') = 'text'
                   AND json_extract(r.entry_json, '$.session_key') <> r.session_key END
)
SELECT CAST(r.id AS BLOB), count(*), sum(r.in_use)
  FROM routes AS r
 WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = r.id)
 GROUP BY r.id
 ORDER BY r.id;

-- name: drop-missing
-- The routes to one session that has no row.
DELETE FROM gateway_routing
 WHERE CASE WHEN typeof(entry_json) = 'text' AND json_valid(entry_json)
            THEN CASE WHEN json_type(entry_json, '$.session_id') = 'text'
                      THEN json_extract(entry_json, '$.session_id') END END = CAST(:id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: drop-mismatched
-- The routes to one session that are kept under another key than their own.
DELETE FROM gateway_routing
 WHERE CASE WHEN typeof(entry_json) = 'text' AND json_valid(entry_json)
            THEN CASE WHEN json_type(entry_json, '$.session_id') = 'text' AND json_type(entry_json, '$.session_key') = 'text'
                           AND json_extract(entry_json, '$.session_key') <> session_key
                      THEN json_extract(entry_json, '$.session_id') END END = CAST(:id AS TEXT);
