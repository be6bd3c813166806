-- Delegated tasks that name a session or a worker which is not there. origin_session is a chat's key, not a session, and
-- origin_ui_session_id an id of a user interface: neither is looked up.

-- name: sessions
-- needs: async_delegations.origin_session_id
-- One row per missing session: id, the tasks that name it as parent or origin, those whose result is not delivered.
WITH named AS MATERIALIZED (
  SELECT d.parent_session_id AS id, d.delegation_id, d.delivery_state
    FROM async_delegations AS d NOT INDEXED
   WHERE typeof(d.parent_session_id) = 'text'
   UNION
  SELECT d.origin_session_id, d.delegation_id, d.delivery_state
    FROM async_delegations AS d NOT INDEXED
   WHERE typeof(d.origin_session_id) = 'text'
)
SELECT CAST(n.id AS BLOB), count(*), sum(n.delivery_state IS NOT 'delivered')
  FROM named AS n
 WHERE n.id <> ''
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = n.id)
 GROUP BY n.id
 ORDER BY n.id;

-- name: sessions
-- The same for files whose tasks keep no origin.
SELECT CAST(d.parent_session_id AS BLOB), count(*), sum(d.delivery_state IS NOT 'delivered')
  FROM async_delegations AS d NOT INDEXED
 WHERE typeof(d.parent_session_id) = 'text'
   AND d.parent_session_id <> ''
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = d.parent_session_id)
 GROUP BY d.parent_session_id
 ORDER BY d.parent_session_id;

-- name: workers
-- needs: async_delegations.owner_execution_id worker_executions
-- One row per missing worker: id, the tasks it owned, those whose result is not delivered. A worker that a delete retired has its
-- receipt under a terminal key and is not missing.
SELECT CAST(d.owner_execution_id AS BLOB), count(*), sum(d.delivery_state IS NOT 'delivered')
  FROM async_delegations AS d NOT INDEXED
 WHERE typeof(d.owner_execution_id) = 'text'
   AND d.owner_execution_id <> ''
   AND NOT EXISTS (SELECT 1 FROM worker_executions AS w WHERE w.execution_id = d.owner_execution_id)
   AND NOT EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.terminal_worker.v1.' || d.owner_execution_id)
 GROUP BY d.owner_execution_id
 ORDER BY d.owner_execution_id;
