-- What stays behind after branching, or after a branched root was deleted. A missing id that HDB201 will give its session row
-- back (it has messages and no tombstone) is left to that class everywhere.

-- name: find-rootless
-- One row per branch whose marker names its own parent while the parent's row is gone: branch, missing root, start.
SELECT CAST(s.id AS BLOB), CAST(s.parent_session_id AS BLOB),
       CASE WHEN typeof(s.started_at) IN ('integer', 'real') THEN s.started_at END
  FROM sessions AS s
 WHERE s.parent_session_id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = s.parent_session_id)
   AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
            THEN json_extract(s.model_config, '$._branched_from') END = s.parent_session_id
   AND (NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.parent_session_id)
        OR EXISTS (SELECT 1 FROM state_meta AS k
                    WHERE k.key = 'gateway.retired_session.v1.' || s.parent_session_id))
 ORDER BY s.id;

-- name: find-branchless
-- needs: sessions.session_key gateway_routing
-- One row per session that ended as branched and has no branch: id, end, newest message, its messages later than a minute after
-- the end, whether it belongs to a chat, whether a route names it, whether such a route is in use. Any child but a sub-agent is a branch.
WITH marked AS MATERIALIZED (
  SELECT json_extract(b.model_config, '$._branched_from') AS root
    FROM sessions AS b
   WHERE CASE WHEN typeof(b.model_config) = 'text' AND json_valid(b.model_config)
              THEN json_type(b.model_config, '$._branched_from') END = 'text'
), routed AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS session_id,
         json_extract(r.entry_json, '$.suspended') IS NOT 1
         AND json_extract(r.entry_json, '$.expiry_finalized') IS NOT 1 AS in_use
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
)
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       (SELECT max(m.timestamp) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000
           AND typeof(s.ended_at) IN ('integer', 'real') AND m.timestamp > s.ended_at + 60),
       s.session_key IS NOT NULL AND s.session_key <> '',
       s.id IN (SELECT r.session_id FROM routed AS r),
       s.id IN (SELECT r.session_id FROM routed AS r WHERE r.in_use)
  FROM sessions AS s
 WHERE s.end_reason = 'branched'
   AND s.ended_at IS NOT NULL
   AND typeof(s.id) = 'text'
   AND s.id NOT IN (SELECT b.root FROM marked AS b)
   AND NOT EXISTS (SELECT 1 FROM sessions AS c
                    WHERE c.parent_session_id = s.id
                      AND c.source NOT IN ('subagent', 'tool')
                      AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
                               THEN json_extract(c.model_config, '$._delegate_from') END IS NOT s.id)
 ORDER BY s.id;

-- name: find-branchless
-- The same for files without chat routes.
WITH marked AS MATERIALIZED (
  SELECT json_extract(b.model_config, '$._branched_from') AS root
    FROM sessions AS b
   WHERE CASE WHEN typeof(b.model_config) = 'text' AND json_valid(b.model_config)
              THEN json_type(b.model_config, '$._branched_from') END = 'text'
)
SELECT CAST(s.id AS BLOB), CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       (SELECT max(m.timestamp) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000),
       (SELECT count(*) FROM messages AS m
         WHERE m.session_id = s.id AND typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp < 4200000000
           AND typeof(s.ended_at) IN ('integer', 'real') AND m.timestamp > s.ended_at + 60),
       0, 0, 0
  FROM sessions AS s
 WHERE s.end_reason = 'branched'
   AND s.ended_at IS NOT NULL
   AND typeof(s.id) = 'text'
   AND s.id NOT IN (SELECT b.root FROM marked AS b)
   AND NOT EXISTS (SELECT 1 FROM sessions AS c
                    WHERE c.parent_session_id = s.id
                      AND c.source NOT IN ('subagent', 'tool')
                      AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
                               THEN json_extract(c.model_config, '$._delegate_from') END IS NOT s.id)
 ORDER BY s.id;

-- name: find-markers
-- One row per marker of a branch or a reset that names a session that is gone: session, name of the marker, missing id, whether
-- the session has a parent. A marker that the parent has too was inherited when a conversation was compressed.
WITH marks AS MATERIALIZED (
  SELECT s.id, s.parent_session_id, n.value AS marker, json_extract(s.model_config, '$.' || n.value) AS named
    FROM sessions AS s CROSS JOIN json_each('["_branched_from", "_reset_from"]') AS n
   WHERE typeof(s.id) = 'text'
     AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
              THEN json_type(s.model_config, '$.' || n.value) END = 'text'
)
SELECT CAST(k.id AS BLOB), k.marker, CAST(k.named AS BLOB), k.parent_session_id IS NOT NULL
  FROM marks AS k
 WHERE k.named <> ''
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = k.named)
   AND (k.parent_session_id IS NULL
        OR (EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = k.parent_session_id)
            AND (k.parent_session_id, k.marker, k.named) NOT IN (SELECT p.id, p.marker, p.named FROM marks AS p)))
   AND (NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = k.named)
        OR EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || k.named))
 ORDER BY k.id, k.marker;

-- name: find-ledger
-- needs: session_admissions worker_executions gateway_routing
-- One row per deleted session and table that still holds rows of it: table, id, rows, whether it has a tombstone. Deleted is an id
-- without a row that a tombstone names, or that the marker of a branch which is still there names as its root. Admissions and
-- workers are looked at elsewhere.
WITH tombs AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.retired_session.v1.') + 1) AS id
    FROM state_meta AS k
   WHERE k.key >= 'gateway.retired_session.v1.' AND k.key < 'gateway.retired_session.v1/'
), roots AS MATERIALIZED (
  SELECT json_extract(b.model_config, '$._branched_from') AS id
    FROM sessions AS b
   WHERE CASE WHEN typeof(b.model_config) = 'text' AND json_valid(b.model_config)
              THEN json_type(b.model_config, '$._branched_from') END = 'text'
), gone AS MATERIALIZED (
  SELECT named.id, named.id IN (SELECT t.id FROM tombs AS t) AS tombstoned
    FROM (SELECT t.id FROM tombs AS t UNION SELECT r.id FROM roots AS r) AS named
   WHERE named.id <> ''
     AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = named.id)
     AND (named.id IN (SELECT t.id FROM tombs AS t)
          OR NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = named.id))
), routes AS MATERIALIZED (
  SELECT json_extract(r.entry_json, '$.session_id') AS id
    FROM gateway_routing AS r
   WHERE CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json)
              THEN json_type(r.entry_json, '$.session_id') END = 'text'
), policies AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.local_policy.v1:') + 1) AS owner,
         CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value)
              THEN CASE WHEN json_type(k.value, '$.entry.session_id') = 'text'
                        THEN json_extract(k.value, '$.entry.session_id') END END AS target
    FROM state_meta AS k
   WHERE k.key >= 'gateway.local_policy.v1:' AND k.key < 'gateway.local_policy.v1;'
)
SELECT 'gateway_routing' AS place, CAST(g.id AS BLOB) AS id, count(*), g.tombstoned
  FROM gone AS g INNER JOIN routes AS r ON r.id = g.id
 GROUP BY g.id
UNION ALL
SELECT 'state_meta', CAST(p.owner AS BLOB), 1,
       p.owner IN (SELECT g.id FROM gone AS g WHERE g.tombstoned)
       OR coalesce(p.target, p.owner) IN (SELECT g.id FROM gone AS g WHERE g.tombstoned)
  FROM policies AS p
 WHERE (p.owner IN (SELECT g.id FROM gone AS g) OR p.target IN (SELECT g.id FROM gone AS g))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id IN (p.owner, p.target))
 ORDER BY place, id;

-- name: detach
-- Takes from one branch the parent whose row is gone. Its marker stays, so lists keep showing it.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id = CAST(:missing AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = CAST(:missing AS TEXT));

-- name: reopen
-- Opens one root again that ended as branched and has no branch.
UPDATE sessions
   SET ended_at = NULL, end_reason = NULL
 WHERE id = CAST(:session_id AS TEXT)
   AND end_reason = 'branched'
   AND ended_at IS NOT NULL;

-- name: strip
-- Takes one marker out of a session without parent; the marker names a session that is gone.
UPDATE sessions
   SET model_config = json_remove(model_config, '$.' || :marker)
 WHERE id = CAST(:session_id AS TEXT)
   AND parent_session_id IS NULL
   AND CASE WHEN typeof(model_config) = 'text' AND json_valid(model_config)
            THEN json_extract(model_config, '$.' || :marker) END = CAST(:missing AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = CAST(:missing AS TEXT));

-- name: clear-routes
-- Removes the routes that name one deleted session.
DELETE FROM gateway_routing
 WHERE CASE WHEN typeof(entry_json) = 'text' AND json_valid(entry_json)
            THEN json_extract(entry_json, '$.session_id') END = CAST(:session_id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:session_id AS TEXT));

-- name: clear-policy
-- Removes the local policy of one deleted session.
DELETE FROM state_meta
 WHERE key = 'gateway.local_policy.v1:' || CAST(:session_id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:session_id AS TEXT));
