-- Admissions and workers that nobody can finish any more. A queued admission waits across starts by design, and a row of the present
-- epoch belongs to the owner that runs now; rows without a session are orphaned-ledger-rows.

-- name: find
-- One row per session: id, admissions of unknown state, workers of unknown state, admissions and workers that an earlier start of
-- the runtime began, the oldest of these starts, the present one.
WITH present AS MATERIALIZED (
  SELECT (SELECT e.epoch FROM runtime_epoch AS e WHERE e.singleton = 1) AS epoch
), stuck AS MATERIALIZED (
  SELECT a.target_session_id AS id, a.status = 'unknown' AS unknown_admission, 0 AS unknown_worker,
         a.status = 'started' AS old_admission, 0 AS old_worker, a.owner_epoch
    FROM session_admissions AS a CROSS JOIN present AS p
   WHERE a.status = 'unknown'
      OR (a.status = 'started' AND a.owner_epoch IS NOT p.epoch)
   UNION ALL
  SELECT w.session_id, 0, w.status = 'unknown', 0, w.status IN ('registered', 'running'), w.owner_epoch
    FROM worker_executions AS w CROSS JOIN present AS p
   WHERE w.status = 'unknown'
      OR (w.status IN ('registered', 'running') AND w.owner_epoch IS NOT p.epoch)
)
SELECT CAST(k.id AS BLOB), sum(k.unknown_admission), sum(k.unknown_worker), sum(k.old_admission), sum(k.old_worker),
       min(CASE WHEN typeof(k.owner_epoch) = 'integer' THEN k.owner_epoch END),
       (SELECT CASE WHEN typeof(p.epoch) = 'integer' THEN p.epoch END FROM present AS p)
  FROM stuck AS k
 WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = k.id)
 GROUP BY k.id
 ORDER BY k.id;
