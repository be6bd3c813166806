-- What a store keeps of deleted sessions so that a request sent again is answered and not run a second time: terminal keys, stored
-- results and receipts of changes. A delete leaves them complete and without what the user wrote.

-- name: admissions
-- One row per terminal admission: id, whether it can be read, its session, who asked, request, whether it still holds an input, and
-- its stored result (NULL none, 0 short, 1 with a copy of the conversation, -1 unreadable).
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.terminal_admission.v1.') + 1) AS id,
         CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN json_type(k.value) = 'object' ELSE 0 END AS readable,
         CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN k.value ELSE '{}' END AS value
    FROM state_meta AS k
   WHERE k.key > 'gateway.terminal_admission.v1.' AND k.key < 'gateway.terminal_admission.v1/'
)
SELECT CAST(t.id AS BLOB), t.readable,
       CAST(json_extract(t.value, '$.target_session_id') AS BLOB),
       CAST(json_extract(t.value, '$.principal_id') AS BLOB),
       CAST(json_extract(t.value, '$.request_id') AS BLOB),
       coalesce(json_extract(t.value, '$.payload_json'), '{}') IS NOT '{}'
       OR coalesce(json_extract(t.value, '$.lineage_json'), '[]') IS NOT '[]',
       (SELECT CASE WHEN typeof(r.value) <> 'text' OR NOT json_valid(r.value) THEN -1
                    WHEN json_type(r.value, '$.result') IS NOT 'object' THEN 0
                    ELSE json_type(r.value, '$.result.last_reasoning') IS NOT NULL
                         OR json_type(r.value, '$.result.tools') IS NOT NULL
                         OR coalesce(json_extract(r.value, '$.result.messages'), '[]') IS NOT '[]' END
          FROM state_meta AS r
         WHERE r.key = 'gateway.admission.result.v1.' || t.id)
  FROM kept AS t
 ORDER BY t.id;

-- name: identities
-- One row per terminal identity: digest of the request, the admission it leads to (NULL where it cannot be read), whether that has
-- its terminal key.
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.terminal_identity.v1.') + 1) AS digest,
         CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value)
              THEN CASE WHEN json_type(k.value) = 'text' THEN json_extract(k.value, '$') END END AS admission
    FROM state_meta AS k
   WHERE k.key > 'gateway.terminal_identity.v1.' AND k.key < 'gateway.terminal_identity.v1/'
)
SELECT CAST(i.digest AS BLOB), CAST(i.admission AS BLOB),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.terminal_admission.v1.' || i.admission)
  FROM kept AS i
 ORDER BY i.digest;

-- name: receipts
-- One row per receipt of a terminal worker that still has its result: worker, session, digest. Only the one that says finished may.
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.terminal_worker.v1.') + 1) AS id, k.value
    FROM state_meta AS k
   WHERE k.key > 'gateway.terminal_worker.v1.' AND k.key < 'gateway.terminal_worker.v1/'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value)
              THEN json_type(k.value, '$.receipts') = 'array' AND json_type(k.value, '$.session_id') = 'text' END
)
SELECT CAST(w.id AS BLOB), CAST(json_extract(w.value, '$.session_id') AS BLOB),
       CASE WHEN r.type = 'object' THEN CAST(json_extract(r.value, '$.payload_digest') AS BLOB) END
  FROM kept AS w CROSS JOIN json_each(w.value, '$.receipts') AS r
 WHERE CASE WHEN r.type = 'object' THEN json_extract(r.value, '$.result_json') END IS NOT NULL
 ORDER BY w.id, r.key;

-- name: workers
-- One row per terminal worker that cannot be read.
SELECT CAST(substr(k.key, length('gateway.terminal_worker.v1.') + 1) AS BLOB)
  FROM state_meta AS k
 WHERE k.key > 'gateway.terminal_worker.v1.' AND k.key < 'gateway.terminal_worker.v1/'
   AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN json_type(k.value) END IS NOT 'object'
 ORDER BY k.key;

-- name: results
-- One row per stored result whose admission is neither in the ledger nor under a terminal key: admission, and whether it holds a copy
-- of the conversation. One that cannot be read is invalid-json.
WITH lost AS MATERIALIZED (
  SELECT k.key, substr(k.key, length('gateway.admission.result.v1.') + 1) AS id
    FROM state_meta AS k
   WHERE k.key > 'gateway.admission.result.v1.' AND k.key < 'gateway.admission.result.v1/'
     AND NOT EXISTS (SELECT 1 FROM session_admissions AS a
                      WHERE a.admission_id = substr(k.key, length('gateway.admission.result.v1.') + 1))
     AND NOT EXISTS (SELECT 1 FROM state_meta AS t
                      WHERE t.key = 'gateway.terminal_admission.v1.' || substr(k.key, length('gateway.admission.result.v1.') + 1))
)
SELECT CAST(l.id AS BLOB),
       CASE WHEN json_type(r.value, '$.result') = 'object'
            THEN json_type(r.value, '$.result.last_reasoning') IS NOT NULL
                 OR json_type(r.value, '$.result.tools') IS NOT NULL
                 OR coalesce(json_extract(r.value, '$.result.messages'), '[]') IS NOT '[]' ELSE 0 END
  FROM lost AS l CROSS JOIN state_meta AS r ON r.key = l.key
 WHERE CASE WHEN typeof(r.value) = 'text' THEN json_valid(r.value) END
 ORDER BY l.id;

-- name: changes
-- One row per receipt of a change that still holds text and per missing session that it names: digest of the request, which of its
-- names, the session.
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.mutation.v1.') + 1) AS digest, k.value
    FROM state_meta AS k
   WHERE k.key > 'gateway.mutation.v1.' AND k.key < 'gateway.mutation.v1/'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value)
              THEN json_type(k.value, '$.result') = 'object'
                   AND coalesce(json_extract(k.value, '$.result.target_message'), json_extract(k.value, '$.result.summary'),
                                json_extract(k.value, '$.result.title')) IS NOT NULL END
)
SELECT CAST(c.digest AS BLOB), n.key, CAST(json_extract(c.value, n.value) AS BLOB)
  FROM kept AS c
 CROSS JOIN json_each('["$.result.session_id", "$.result.target_message.session_id", "$.result.target_session_id", "$.result.previous_target_session_id"]') AS n
 WHERE json_type(c.value, n.value) = 'text'
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = json_extract(c.value, n.value))
 ORDER BY c.digest, n.key;

-- name: repeated
-- One row per admission of a request of the Responses API that was admitted more than once: a number for the request (its name is a
-- client's own word), admission, session, whether that is deleted. Such a name stands for one request in the whole store.
WITH admitted AS MATERIALIZED (
  SELECT a.request_id, a.admission_id AS id, a.target_session_id AS session_id, 0 AS deleted
    FROM session_admissions AS a
   WHERE a.principal_id = 'api' AND a.request_id >= 'responses:' AND a.request_id < 'responses;'
   UNION
  SELECT json_extract(k.value, '$.request_id'), json_extract(k.value, '$.admission_id'),
         json_extract(k.value, '$.target_session_id'), 1
    FROM state_meta AS k
   WHERE k.key > 'gateway.terminal_admission.v1.' AND k.key < 'gateway.terminal_admission.v1/'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value)
              THEN json_extract(k.value, '$.principal_id') = 'api'
                   AND json_extract(k.value, '$.request_id') >= 'responses:'
                   AND json_extract(k.value, '$.request_id') < 'responses;' END
)
SELECT dense_rank() OVER (ORDER BY m.request_id), CAST(m.id AS BLOB), CAST(m.session_id AS BLOB), m.deleted
  FROM admitted AS m
 WHERE m.request_id IN (SELECT o.request_id FROM admitted AS o GROUP BY o.request_id HAVING count(DISTINCT o.id) > 1)
 ORDER BY m.request_id, m.id;

-- name: shorten-results
-- Stored results keep the answer and lose the copy of the conversation.
UPDATE state_meta
   SET value = json_set(json_remove(value, '$.result.messages', '$.result.last_reasoning', '$.result.tools'),
                        '$.result.messages', json('[]'))
 WHERE key IN (SELECT i.value FROM json_each(:keys) AS i)
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value)
            THEN json_type(value, '$.result') = 'object'
                 AND (json_type(value, '$.result.last_reasoning') IS NOT NULL
                      OR json_type(value, '$.result.tools') IS NOT NULL
                      OR coalesce(json_extract(value, '$.result.messages'), '[]') IS NOT '[]') END;

-- name: empty-admissions
-- Terminal admissions lose what the user wrote.
UPDATE state_meta
   SET value = json_set(value, '$.payload_json', '{}', '$.lineage_json', '[]')
 WHERE key IN (SELECT i.value FROM json_each(:keys) AS i)
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value)
            THEN json_type(value) = 'object'
                 AND (coalesce(json_extract(value, '$.payload_json'), '{}') IS NOT '{}'
                      OR coalesce(json_extract(value, '$.lineage_json'), '[]') IS NOT '[]') END;

-- name: empty-workers
-- Terminal workers of one session lose every result but the one that says finished.
UPDATE state_meta
   SET value = json_set(value, '$.receipts',
                        json((SELECT json_group_array(json(CASE WHEN r.type <> 'object' OR json_extract(r.value, '$.payload_digest') IS :closing
                                                                THEN CASE WHEN r.type IN ('object', 'array') THEN r.value ELSE json_quote(r.atom) END
                                                                ELSE json_set(r.value, '$.result_json', NULL) END))
                                FROM json_each(state_meta.value, '$.receipts') AS r)))
 WHERE key IN (SELECT i.value FROM json_each(:keys) AS i)
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value) THEN json_type(value, '$.receipts') = 'array' END;

-- name: empty-changes
-- Receipts of changes keep what was done and lose the text.
UPDATE state_meta
   SET value = json_replace(value, '$.result.target_message', NULL, '$.result.summary', NULL, '$.result.title', NULL)
 WHERE key IN (SELECT i.value FROM json_each(:keys) AS i)
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value)
            THEN json_type(value, '$.result') = 'object'
                 AND coalesce(json_extract(value, '$.result.target_message'), json_extract(value, '$.result.summary'),
                              json_extract(value, '$.result.title')) IS NOT NULL END;

-- name: blank-admission
-- A terminal admission that cannot be read becomes one that fits no request: it is refused, and stops no look-up.
UPDATE state_meta
   SET value = json_object('admission_id', :admission_id, 'generation', NULL, 'intent', 'queue', 'lineage_json', '[]', 'outcome', NULL,
                           'owner_epoch', NULL, 'payload_digest', '', 'payload_json', '{}', 'principal_id', '', 'request_id', '',
                           'seq', NULL, 'status', 'terminal', 'target_session_id', '')
 WHERE key = :key
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value) THEN json_type(value) END IS NOT 'object';

-- name: add-identity
-- A request leads to its terminal admission again.
INSERT INTO state_meta (key, value)
SELECT :key, json_quote(:admission_id)
 WHERE EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.terminal_admission.v1.' || :admission_id);

-- name: set-identity
-- The same where the identity is there and leads nowhere.
UPDATE state_meta
   SET value = json_quote(:admission_id)
 WHERE key = :key
   AND EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.terminal_admission.v1.' || :admission_id);

-- name: drop-key
-- One identity that leads nowhere, or one terminal worker that cannot be read: a request that asks for it is refused.
DELETE FROM state_meta
 WHERE key = :key;
