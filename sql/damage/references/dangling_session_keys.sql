-- Keys of state_meta that embed or hold the id of a session that has no row. Tombstones, terminal keys and generations outlive
-- their session by design and are not looked at. A value that cannot be read is invalid-json.

-- name: goals
-- One row per goal of a missing session: id, status and time of making (NULL where it cannot be read), whether it has a tombstone.
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('goal:') + 1) AS id,
         CASE WHEN typeof(k.value) = 'text' THEN k.value ELSE '{}' END AS value
    FROM state_meta AS k
   WHERE k.key > 'goal:' AND k.key < 'goal;'
     AND (typeof(k.value) <> 'text' OR json_valid(k.value))
)
SELECT CAST(g.id AS BLOB),
       CASE WHEN json_extract(g.value, '$.status') IN ('active', 'paused', 'done', 'cleared')
            THEN json_extract(g.value, '$.status') END,
       CASE WHEN json_type(g.value, '$.created_at') IN ('integer', 'real') THEN json_extract(g.value, '$.created_at') END,
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || g.id)
  FROM kept AS g
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = g.id)
 ORDER BY g.id;

-- name: owned
-- One row per setting or binding of a missing session: the prefix of the key, the id.
WITH kept AS MATERIALIZED (
  SELECT 'gateway.api.binding.v1.' AS prefix, substr(k.key, length('gateway.api.binding.v1.') + 1) AS id
    FROM state_meta AS k
   WHERE k.key > 'gateway.api.binding.v1.' AND k.key < 'gateway.api.binding.v1/'
     AND (typeof(k.value) <> 'text' OR json_valid(k.value))
   UNION ALL
  SELECT 'gateway.api.settings.v1.', substr(k.key, length('gateway.api.settings.v1.') + 1)
    FROM state_meta AS k
   WHERE k.key > 'gateway.api.settings.v1.' AND k.key < 'gateway.api.settings.v1/'
     AND (typeof(k.value) <> 'text' OR json_valid(k.value))
)
SELECT o.prefix, CAST(o.id AS BLOB)
  FROM kept AS o
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = o.id)
 ORDER BY o.prefix, o.id;

-- name: conversations
-- One row per missing session that named conversations lead to: id, how many. Their names are an API client's own words.
SELECT CAST(k.value AS BLOB), count(*)
  FROM state_meta AS k
 WHERE k.key > 'gateway.api.conversation.v1.' AND k.key < 'gateway.api.conversation.v1/'
   AND typeof(k.value) = 'text'
   AND k.value <> ''
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = k.value)
 GROUP BY k.value
 ORDER BY k.value;

-- name: policies
-- needs: gateway_routing session_admissions worker_executions
-- One row per local policy whose conversation is gone: its owner, and the session it now leads to (the owner itself where it names
-- none). A policy of a session that was provably deleted is left to branched-root-leftovers.
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.local_policy.v1:') + 1) AS owner,
         CASE WHEN json_type(k.value, '$.entry.session_id') = 'text' THEN json_extract(k.value, '$.entry.session_id') END AS target
    FROM state_meta AS k
   WHERE k.key > 'gateway.local_policy.v1:' AND k.key < 'gateway.local_policy.v1;'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN json_type(k.value) END = 'object'
), roots AS MATERIALIZED (
  SELECT json_extract(b.model_config, '$._branched_from') AS id
    FROM sessions AS b
   WHERE CASE WHEN typeof(b.model_config) = 'text' AND json_valid(b.model_config)
              THEN json_type(b.model_config, '$._branched_from') END = 'text'
), lost AS MATERIALIZED (
  SELECT p.owner, coalesce(p.target, p.owner) AS target
    FROM kept AS p
   WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = coalesce(p.target, p.owner))
), deleted AS MATERIALIZED (
  SELECT named.id
    FROM (SELECT l.owner AS id FROM lost AS l UNION SELECT l.target FROM lost AS l) AS named
   WHERE EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || named.id)
      OR (named.id IN (SELECT b.id FROM roots AS b)
          AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = named.id)
          AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = named.id))
)
SELECT CAST(l.owner AS BLOB), CAST(l.target AS BLOB)
  FROM lost AS l
 WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = l.owner)
    OR (l.owner NOT IN (SELECT d.id FROM deleted AS d) AND l.target NOT IN (SELECT d.id FROM deleted AS d))
 ORDER BY l.owner;

-- name: policies
-- The same for files without a ledger, where nothing else looks at policies.
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.local_policy.v1:') + 1) AS owner,
         CASE WHEN json_type(k.value, '$.entry.session_id') = 'text' THEN json_extract(k.value, '$.entry.session_id') END AS target
    FROM state_meta AS k
   WHERE k.key > 'gateway.local_policy.v1:' AND k.key < 'gateway.local_policy.v1;'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN json_type(k.value) END = 'object'
)
SELECT CAST(p.owner AS BLOB), CAST(coalesce(p.target, p.owner) AS BLOB)
  FROM kept AS p
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = coalesce(p.target, p.owner))
 ORDER BY p.owner;

-- name: drop
-- One key, of one missing session.
DELETE FROM state_meta
 WHERE key = :prefix || CAST(:owner AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: drop-conversations
-- The named conversations that lead to one missing session; a name that is used again then begins a new one.
DELETE FROM state_meta
 WHERE key > 'gateway.api.conversation.v1.' AND key < 'gateway.api.conversation.v1/'
   AND value = CAST(:id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));
