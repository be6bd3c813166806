-- What else names sessions that a step would remove: read by hermes_dbtools/damage/lineage/_purge.py. `:ids` is a JSON list of ids.

-- name: weight
-- How many messages the sessions hold, and their bytes.
SELECT count(*),
       total(coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
             + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0)),
       min(m.id), max(m.id)
  FROM messages AS m
 WHERE m.session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: usage
-- needs: session_model_usage.session_id
-- How many usage rows by model name them.
SELECT count(*) FROM session_model_usage AS u WHERE u.session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: daily
-- needs: session_daily_usage.session_id
-- How many usage rows by day name them.
SELECT count(*) FROM session_daily_usage AS u WHERE u.session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: children
-- How many other sessions hang under them.
SELECT count(*)
  FROM sessions AS s
 WHERE s.parent_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND s.id NOT IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: prompts
-- needs: system_prompts.hash sessions.system_prompt_hash sessions.tool_names
-- One row per stored prompt that no other session uses: its digest.
SELECT p.hash
  FROM system_prompts AS p
 WHERE typeof(p.hash) = 'text'
   AND EXISTS (SELECT 1 FROM sessions AS s
                WHERE s.id IN (SELECT j.value FROM json_each(:ids) AS j)
                  AND p.hash IN (s.system_prompt_hash, s.tool_names))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s
                    WHERE s.id NOT IN (SELECT j.value FROM json_each(:ids) AS j)
                      AND p.hash IN (s.system_prompt_hash, s.tool_names))
 ORDER BY p.hash;

-- name: prompts
-- needs: system_prompts.hash sessions.system_prompt_hash
-- The same for files whose sessions do not name their tools.
SELECT p.hash
  FROM system_prompts AS p
 WHERE typeof(p.hash) = 'text'
   AND EXISTS (SELECT 1 FROM sessions AS s
                WHERE s.id IN (SELECT j.value FROM json_each(:ids) AS j) AND s.system_prompt_hash = p.hash)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s
                    WHERE s.id NOT IN (SELECT j.value FROM json_each(:ids) AS j) AND s.system_prompt_hash = p.hash)
 ORDER BY p.hash;

-- name: routed
-- needs: gateway_routing.entry_json
-- The sessions of the list that a route names.
SELECT DISTINCT j.value
  FROM json_each(:ids) AS j
 INNER JOIN gateway_routing AS r
    ON CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
            THEN json_extract(r.entry_json, '$.session_id') END = j.value
 ORDER BY j.value;

-- name: delegating
-- needs: async_delegations.parent_session_id
-- The sessions of the list that handed out a task.
SELECT DISTINCT d.parent_session_id
  FROM async_delegations AS d
 WHERE d.parent_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
 ORDER BY d.parent_session_id;

-- name: kept-in-meta
-- The sessions of the list that have a goal or a local policy.
SELECT j.value
  FROM json_each(:ids) AS j
 WHERE EXISTS (SELECT 1 FROM state_meta AS k
                WHERE k.key IN ('goal:' || j.value, 'gateway.local_policy.v1:' || j.value))
 ORDER BY j.value;

-- name: naming
-- A template: the sessions of the list that a column of a table names.
SELECT DISTINCT t.{column} FROM {table} AS t WHERE t.{column} IN (SELECT j.value FROM json_each(:ids) AS j);
