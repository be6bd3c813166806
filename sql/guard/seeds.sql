-- What makes a session live by itself: read by hermes_dbtools/guard.py, which takes away what dead processes left.

-- name: other-hosts
-- needs: gateway_heartbeats.host gateway_heartbeats.last_heartbeat
-- One row per host whose gateway has said since :since that it serves this file; a time that is no number counts.
SELECT DISTINCT CAST(beat.host AS BLOB) AS host
  FROM gateway_heartbeats AS beat NOT INDEXED
 WHERE beat.host <> ''
   AND (typeof(beat.last_heartbeat) NOT IN ('integer', 'real') OR beat.last_heartbeat > :since)
 ORDER BY 1;

-- name: turn-leases
-- needs: session_turn_leases.conversation_id session_turn_leases.holder session_turn_leases.expires_at
-- One row per lease that has not run out: root of the lineage, holder, expiry (NULL where it is no number).
SELECT CAST(lease.conversation_id AS BLOB) AS session_id,
       CAST(lease.holder AS BLOB) AS holder,
       CASE WHEN typeof(lease.expires_at) IN ('integer', 'real') THEN lease.expires_at END AS expires_at
  FROM session_turn_leases AS lease NOT INDEXED
 WHERE lease.conversation_id IS NOT NULL
   AND (typeof(lease.expires_at) NOT IN ('integer', 'real') OR lease.expires_at > :now)
 ORDER BY 1;

-- name: compression-locks
-- needs: compression_locks.session_id compression_locks.holder compression_locks.expires_at
-- One row per lock that has not run out: session, holder, expiry (NULL where it is no number).
SELECT CAST(lock.session_id AS BLOB) AS session_id,
       CAST(lock.holder AS BLOB) AS holder,
       CASE WHEN typeof(lock.expires_at) IN ('integer', 'real') THEN lock.expires_at END AS expires_at
  FROM compression_locks AS lock NOT INDEXED
 WHERE lock.session_id IS NOT NULL
   AND (typeof(lock.expires_at) NOT IN ('integer', 'real') OR lock.expires_at > :now)
 ORDER BY 1;

-- name: admissions
-- needs: session_admissions.seq session_admissions.target_session_id session_admissions.lineage_json session_admissions.status index:session_admissions_pending
-- One row per session and status: an admission that is not terminal has it as its target or in its lineage, whose
-- last session is the transcript. Settled rows are passed over by the index, for their payloads are long.
WITH pending AS MATERIALIZED (
    SELECT candidate.seq
      FROM session_admissions AS candidate
     WHERE candidate.status IS NOT 'terminal'
), admission AS MATERIALIZED (
    SELECT named.target_session_id, named.lineage_json, named.status
      FROM pending
      JOIN session_admissions AS named ON named.seq = pending.seq
)
SELECT CAST(admission.target_session_id AS BLOB) AS session_id, CAST(admission.status AS BLOB) AS status
  FROM admission
 WHERE admission.target_session_id IS NOT NULL
 UNION
SELECT CAST(part.value AS BLOB), CAST(admission.status AS BLOB)
  FROM admission
  JOIN json_each(CASE WHEN json_valid(admission.lineage_json) THEN admission.lineage_json ELSE '[]' END) AS part
 WHERE part.type = 'text'
 ORDER BY 1, 2;

-- name: admissions
-- needs: session_admissions.target_session_id session_admissions.lineage_json session_admissions.status
-- The same where the index is missing or may not be relied on: every row is read.
WITH admission AS MATERIALIZED (
    SELECT named.target_session_id, named.lineage_json, named.status
      FROM session_admissions AS named NOT INDEXED
     WHERE named.status IS NOT 'terminal'
)
SELECT CAST(admission.target_session_id AS BLOB) AS session_id, CAST(admission.status AS BLOB) AS status
  FROM admission
 WHERE admission.target_session_id IS NOT NULL
 UNION
SELECT CAST(part.value AS BLOB), CAST(admission.status AS BLOB)
  FROM admission
  JOIN json_each(CASE WHEN json_valid(admission.lineage_json) THEN admission.lineage_json ELSE '[]' END) AS part
 WHERE part.type = 'text'
 ORDER BY 1, 2;

-- name: workers
-- needs: worker_executions.session_id worker_executions.status
-- One row per session and status of a worker that is not terminal.
SELECT DISTINCT CAST(worker.session_id AS BLOB) AS session_id, CAST(worker.status AS BLOB) AS status
  FROM worker_executions AS worker NOT INDEXED
 WHERE worker.session_id IS NOT NULL
   AND worker.status IS NOT 'terminal'
 ORDER BY 1, 2;

-- name: recent
-- needs: index:idx_messages_session
-- One row per session that is open or has no row, with the time of its newest message from :since to :until.
-- Every session id of messages is visited by the index, none of the messages between.
WITH RECURSIVE written (session_id) AS (
    SELECT MIN(message.session_id) FROM messages AS message
     UNION ALL
    SELECT (SELECT MIN(message.session_id)
              FROM messages AS message
             WHERE message.session_id > written.session_id)
      FROM written
     WHERE written.session_id IS NOT NULL
), newest (session_id, written_at) AS MATERIALIZED (
    SELECT written.session_id,
           (SELECT MAX(message.timestamp)
              FROM messages AS message
             WHERE message.session_id = written.session_id
               AND message.timestamp > :since
               AND message.timestamp <= :until)
      FROM written
     WHERE written.session_id IS NOT NULL
)
SELECT CAST(newest.session_id AS BLOB) AS session_id, newest.written_at, session.id IS NULL AS rowless
  FROM newest
  LEFT JOIN sessions AS session ON session.id = newest.session_id
 WHERE newest.written_at IS NOT NULL
   AND session.ended_at IS NULL
 ORDER BY 1;

-- name: recent
-- The same where the index is missing or may not be relied on: every message's session and time are read.
SELECT CAST(newest.session_id AS BLOB) AS session_id, newest.written_at, session.id IS NULL AS rowless
  FROM (SELECT message.session_id, MAX(message.timestamp) AS written_at
          FROM messages AS message NOT INDEXED
         WHERE message.session_id IS NOT NULL
           AND message.timestamp > :since
           AND message.timestamp <= :until
         GROUP BY message.session_id) AS newest
  LEFT JOIN sessions AS session NOT INDEXED ON session.id = newest.session_id
 WHERE session.ended_at IS NULL
 ORDER BY 1;
