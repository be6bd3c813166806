-- Rows of the ledger whose session, or whose execution, is gone. A retirement moves them under terminal keys, as a delete of the
-- store does, so that the same request sent again is answered and not run a second time.

-- name: sessions
-- One row per missing session that admissions or workers name: id, how it is stored, admissions, workers, receipts, rows that are
-- not terminal, rows whose state is unknown, whether it has a tombstone.
WITH named AS MATERIALIZED (
  SELECT a.target_session_id AS id, 1 AS admissions, 0 AS workers, 0 AS receipts,
         a.status IS NOT 'terminal' AS unfinished, a.status IS 'unknown' AS unknown
    FROM session_admissions AS a
   WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = a.target_session_id)
   UNION ALL
  SELECT w.session_id, 0, 1, (SELECT count(*) FROM worker_receipts AS r WHERE r.execution_id = w.execution_id),
         w.status IS NOT 'terminal', w.status IS 'unknown'
    FROM worker_executions AS w
   WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = w.session_id)
)
SELECT CAST(n.id AS BLOB), typeof(n.id), sum(n.admissions), sum(n.workers), sum(n.receipts), sum(n.unfinished), sum(n.unknown),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || n.id)
  FROM named AS n
 WHERE n.id IS NOT NULL
 GROUP BY n.id
 ORDER BY n.id;

-- name: receipts
-- One row per execution that is gone and whose receipts are left: id, how it is stored, receipts, the session it worked for (where
-- a delete has retired it).
SELECT CAST(r.execution_id AS BLOB), typeof(r.execution_id), count(*),
       (SELECT CASE WHEN json_valid(t.value) THEN CAST(json_extract(t.value, '$.session_id') AS BLOB) END
          FROM state_meta AS t
         WHERE t.key = 'gateway.terminal_worker.v1.' || r.execution_id)
  FROM worker_receipts AS r
 WHERE NOT EXISTS (SELECT 1 FROM worker_executions AS w WHERE w.execution_id = r.execution_id)
 GROUP BY r.execution_id
 ORDER BY r.execution_id;

-- name: admissions
-- One row per admission of a missing session: session, admission, who asked, request, the three lists of its files (NULL where they
-- cannot be read), whether every value fits a terminal key, what became of its stored result (NULL none, 0 already short, 1 to be
-- shortened, -1 unreadable), whether its terminal key is there already.
SELECT CAST(a.target_session_id AS BLOB), CAST(a.admission_id AS BLOB), CAST(a.principal_id AS BLOB), CAST(a.request_id AS BLOB),
       CASE WHEN typeof(a.payload_json) = 'text' AND json_valid(a.payload_json)
            THEN CAST(json_array(json_extract(a.payload_json, '$.api_turn_v1.media'),
                                 json_extract(a.payload_json, '$.attachments_v1.media'),
                                 json_extract(a.payload_json, '$.native_text_v1.media')) AS BLOB) END,
       'blob' NOT IN (typeof(a.admission_id), typeof(a.request_id), typeof(a.principal_id), typeof(a.target_session_id),
                      typeof(a.payload_digest), typeof(a.intent), typeof(a.status), typeof(a.outcome), typeof(a.owner_epoch),
                      typeof(a.generation)),
       (SELECT CASE WHEN typeof(k.value) <> 'text' OR NOT json_valid(k.value) THEN -1
                    WHEN json_type(k.value, '$.result') IS NOT 'object' THEN 0
                    ELSE json_type(k.value, '$.result.last_reasoning') IS NOT NULL
                         OR json_type(k.value, '$.result.tools') IS NOT NULL
                         OR coalesce(json_extract(k.value, '$.result.messages'), '[]') IS NOT '[]' END
          FROM state_meta AS k
         WHERE k.key = 'gateway.admission.result.v1.' || a.admission_id),
       EXISTS (SELECT 1 FROM state_meta AS k WHERE k.key = 'gateway.terminal_admission.v1.' || a.admission_id)
  FROM session_admissions AS a
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = a.target_session_id)
 ORDER BY a.target_session_id, a.seq;

-- name: workers
-- One row per worker of a missing session: session, whether its values and those of its receipts fit a terminal key, and whether
-- that key is there already.
SELECT CAST(w.session_id AS BLOB),
       'blob' NOT IN (typeof(w.execution_id), typeof(w.kind), typeof(w.owner_epoch), typeof(w.generation), typeof(w.status),
                      typeof(w.adoption_digest), typeof(w.last_sequence))
       AND NOT EXISTS (SELECT 1
                         FROM worker_receipts AS r
                        WHERE r.execution_id = w.execution_id
                          AND 'blob' IN (typeof(r.sequence), typeof(r.payload_digest), typeof(r.result_json))),
       EXISTS (SELECT 1 FROM state_meta AS k WHERE k.key = 'gateway.terminal_worker.v1.' || w.execution_id)
  FROM worker_executions AS w
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = w.session_id)
 ORDER BY w.session_id, w.execution_id;

-- name: keys-there
-- Those of some keys that are stored already.
SELECT i.value
  FROM json_each(:keys) AS i
 WHERE EXISTS (SELECT 1 FROM state_meta AS k WHERE k.key = i.value)
 ORDER BY i.value;

-- name: shorten-results
-- The stored results of one session's admissions keep the answer and lose the copy of the conversation.
UPDATE state_meta
   SET value = json_set(json_remove(value, '$.result.messages', '$.result.last_reasoning', '$.result.tools'),
                        '$.result.messages', json('[]'))
 WHERE key IN (SELECT 'gateway.admission.result.v1.' || a.admission_id
                 FROM session_admissions AS a
                WHERE a.target_session_id = CAST(:id AS TEXT))
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value)
            THEN json_type(value, '$.result') = 'object'
                 AND (json_type(value, '$.result.last_reasoning') IS NOT NULL
                      OR json_type(value, '$.result.tools') IS NOT NULL
                      OR coalesce(json_extract(value, '$.result.messages'), '[]') IS NOT '[]') END;

-- name: retire-media
-- The files of one session's admissions may go once nothing else holds them. Each of :files is [key, admission, list, place].
INSERT INTO state_meta (key, value)
SELECT json_extract(f.value, '$[0]'),
       json_extract(a.payload_json, '$.' || json_extract(f.value, '$[2]') || '.media[' || json_extract(f.value, '$[3]') || ']')
  FROM json_each(:files) AS f
 INNER JOIN session_admissions AS a ON a.admission_id = json_extract(f.value, '$[1]')
 WHERE a.target_session_id = CAST(:id AS TEXT)
   AND a.status = 'terminal';

-- name: retire-admissions
-- The admissions of one session go on under terminal keys, without what the user wrote.
INSERT INTO state_meta (key, value)
SELECT 'gateway.terminal_admission.v1.' || a.admission_id,
       json_object('admission_id', a.admission_id, 'generation', a.generation, 'intent', a.intent, 'lineage_json', '[]',
                   'outcome', a.outcome, 'owner_epoch', a.owner_epoch, 'payload_digest', a.payload_digest, 'payload_json', '{}',
                   'principal_id', a.principal_id, 'request_id', a.request_id, 'seq', a.seq, 'status', a.status,
                   'target_session_id', a.target_session_id)
  FROM session_admissions AS a
 WHERE a.target_session_id = CAST(:id AS TEXT)
   AND a.status = 'terminal';

-- name: retire-identities
-- The requests behind them lead there. Each of :identities is [admission, key].
INSERT INTO state_meta (key, value)
SELECT json_extract(i.value, '$[1]'), json_quote(a.admission_id)
  FROM json_each(:identities) AS i
 INNER JOIN session_admissions AS a ON a.admission_id = json_extract(i.value, '$[0]')
 WHERE a.target_session_id = CAST(:id AS TEXT)
   AND a.status = 'terminal';

-- name: retire-workers
-- The workers of one session go on under terminal keys with their receipts; only the receipt that says finished keeps its result.
INSERT INTO state_meta (key, value)
SELECT 'gateway.terminal_worker.v1.' || w.execution_id,
       json_object('adoption_digest', w.adoption_digest, 'execution_id', w.execution_id, 'generation', w.generation,
                   'kind', w.kind, 'last_sequence', w.last_sequence, 'owner_epoch', w.owner_epoch,
                   'receipts',
                   json((SELECT json_group_array(json_object('payload_digest', r.payload_digest,
                                                             'result_json', CASE WHEN r.payload_digest = :closing THEN r.result_json END,
                                                             'sequence', r.sequence))
                           FROM (SELECT k.payload_digest, k.result_json, k.sequence
                                   FROM worker_receipts AS k
                                  WHERE k.execution_id = w.execution_id
                                  ORDER BY k.sequence) AS r)),
                   'session_id', w.session_id, 'status', w.status)
  FROM worker_executions AS w
 WHERE w.session_id = CAST(:id AS TEXT)
   AND w.status = 'terminal';

-- name: drop-receipts
-- The receipts of one session's workers.
DELETE FROM worker_receipts
 WHERE execution_id IN (SELECT w.execution_id FROM worker_executions AS w WHERE w.session_id = CAST(:id AS TEXT))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: drop-workers
-- The workers of one session that is gone.
DELETE FROM worker_executions
 WHERE session_id = CAST(:id AS TEXT)
   AND status = 'terminal'
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: drop-admissions
-- The admissions of one session that is gone.
DELETE FROM session_admissions
 WHERE target_session_id = CAST(:id AS TEXT)
   AND status = 'terminal'
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: bury
-- The tombstone that keeps the id from being used anew.
INSERT INTO state_meta (key, value)
SELECT 'gateway.retired_session.v1.' || CAST(:id AS TEXT), '{}'
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: drop-lost-receipts
-- The receipts of one execution that is gone.
DELETE FROM worker_receipts
 WHERE execution_id IN (CAST(:execution_id AS TEXT), :execution_id)
   AND NOT EXISTS (SELECT 1 FROM worker_executions AS w WHERE w.execution_id = worker_receipts.execution_id);
