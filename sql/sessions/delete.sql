-- What a delete of sessions takes with it: read by hermes_dbtools/sessions/. A temporary table holds the sessions that go; `:ids` is
-- a JSON list of those that go with one root.

-- name: doomed-table
-- The sessions that go, each with the asked session that it goes with.
CREATE TEMP TABLE IF NOT EXISTS doomed_sessions (id TEXT PRIMARY KEY, root TEXT NOT NULL) WITHOUT ROWID;

-- name: forget-doomed
-- Nothing is left of an earlier look.
DELETE FROM temp.doomed_sessions;

-- name: doom
-- Adds sessions; each of :doomed is [id, root].
INSERT INTO temp.doomed_sessions (id, root)
SELECT json_extract(i.value, '$[0]'), json_extract(i.value, '$[1]') FROM json_each(:doomed) AS i;

-- name: links
-- One row per session that hangs under another or has a marker: id, parent, whether it continues the parent after a compression,
-- the session that its delegate marker names, whether a branch marker wins over that.
WITH configured AS NOT MATERIALIZED (
  SELECT s.id, s.parent_session_id, s.source,
         CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s
   WHERE s.parent_session_id IS NOT NULL OR instr(s.model_config, '_delegate_from')
)
SELECT CAST(c.id AS BLOB), CAST(c.parent_session_id AS BLOB),
       c.source IS NOT 'tool'
       AND c.parent_session_id IS NOT json_extract(c.config, '$._branched_from')
       AND c.parent_session_id IS NOT json_extract(c.config, '$._delegate_from')
       AND c.parent_session_id IS NOT json_extract(c.config, '$._reset_from')
       AND coalesce((SELECT p.end_reason = 'compression' FROM sessions AS p WHERE p.id = c.parent_session_id), 0),
       CASE WHEN json_type(c.config, '$._delegate_from') = 'text' THEN CAST(json_extract(c.config, '$._delegate_from') AS BLOB) END,
       json_extract(c.config, '$._branched_from') IS NOT NULL
  FROM configured AS c
 ORDER BY c.id;

-- name: policies
-- needs: session_admissions.target_session_id
-- One row per session of a local conversation: the owner of its policy, the session (the current one, or an earlier one).
WITH kept AS MATERIALIZED (
  SELECT substr(k.key, length('gateway.local_policy.v1:') + 1) AS owner, k.value
    FROM state_meta AS k
   WHERE k.key > 'gateway.local_policy.v1:' AND k.key < 'gateway.local_policy.v1;'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN json_type(k.value) END = 'object'
), named AS (
  SELECT p.owner, json_extract(p.value, '$.entry.session_id') AS id
    FROM kept AS p
   WHERE json_type(p.value, '$.entry.session_id') = 'text'
   UNION
  SELECT p.owner, l.value
    FROM kept AS p CROSS JOIN json_each(p.value, '$.lineage') AS l
   WHERE json_type(p.value, '$.lineage') = 'array' AND l.type = 'text'
)
SELECT CAST(n.owner AS BLOB), CAST(n.id AS BLOB) FROM named AS n ORDER BY n.owner, n.id;

-- name: sessions-there
-- Those of some sessions that have a row.
SELECT i.value FROM json_each(:ids) AS i WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = i.value) ORDER BY i.value;

-- name: sessions-like
-- Up to two sessions whose ids begin with a word; :next is the word after all of those.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.id >= :word AND s.id < :next ORDER BY s.id LIMIT 2;

-- name: naming
-- A template: one row per root of which a table unknown to this tool names a session.
SELECT DISTINCT d.root FROM {table} AS t INNER JOIN temp.doomed_sessions AS d ON d.id = t.{column} ORDER BY d.root;

-- name: messages
-- One row per root: its messages and their bytes.
SELECT d.root, count(*),
       total(coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
             + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0))
  FROM temp.doomed_sessions AS d CROSS JOIN messages AS m ON m.session_id = d.id
 GROUP BY d.root
 ORDER BY d.root;

-- name: usage
-- needs: session_model_usage.session_id
-- One row per root: its usage rows by model.
SELECT d.root, count(*) FROM temp.doomed_sessions AS d CROSS JOIN session_model_usage AS u ON u.session_id = d.id
 GROUP BY d.root ORDER BY d.root;

-- name: daily
-- needs: session_daily_usage.session_id
-- One row per root: its usage rows by day.
SELECT d.root, count(*) FROM temp.doomed_sessions AS d CROSS JOIN session_daily_usage AS u ON u.session_id = d.id
 GROUP BY d.root ORDER BY d.root;

-- name: bindings
-- needs: telegram_dm_topic_bindings.session_id
-- One row per root: its topics.
SELECT d.root, count(*) FROM temp.doomed_sessions AS d CROSS JOIN telegram_dm_topic_bindings AS b ON b.session_id = d.id
 GROUP BY d.root ORDER BY d.root;

-- name: locks
-- needs: compression_locks.session_id
-- One row per root: locks that have run out or whose holder is gone, for the guard has let it pass.
SELECT d.root, count(*) FROM temp.doomed_sessions AS d CROSS JOIN compression_locks AS l ON l.session_id = d.id
 GROUP BY d.root ORDER BY d.root;

-- name: leases
-- needs: session_turn_leases.conversation_id
-- The same for turn leases.
SELECT d.root, count(*) FROM temp.doomed_sessions AS d CROSS JOIN session_turn_leases AS l ON l.conversation_id = d.id
 GROUP BY d.root ORDER BY d.root;

-- name: routes
-- needs: gateway_routing.entry_json
-- One row per root: chat routes that lead there.
SELECT d.root, count(*)
  FROM gateway_routing AS r
 INNER JOIN temp.doomed_sessions AS d
    ON d.id = CASE WHEN typeof(r.entry_json) = 'text' AND json_valid(r.entry_json) THEN json_extract(r.entry_json, '$.session_id') END
 GROUP BY d.root ORDER BY d.root;

-- name: settings
-- One row per root: goals, API settings, API bindings and policies kept under its ids.
SELECT d.root, count(*)
  FROM temp.doomed_sessions AS d
 CROSS JOIN json_each('["goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.local_policy.v1:"]') AS p
 INNER JOIN state_meta AS k ON k.key = p.value || d.id
 GROUP BY d.root ORDER BY d.root;

-- name: policies-there
-- One row per root: policies of other owners that lead to it.
SELECT d.root, count(*)
  FROM state_meta AS k
 INNER JOIN temp.doomed_sessions AS d
    ON d.id = CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value) THEN json_extract(k.value, '$.entry.session_id') END
 WHERE k.key > 'gateway.local_policy.v1:' AND k.key < 'gateway.local_policy.v1;'
   AND substr(k.key, length('gateway.local_policy.v1:') + 1) NOT IN (SELECT o.id FROM temp.doomed_sessions AS o WHERE o.root = d.root)
 GROUP BY d.root ORDER BY d.root;

-- name: conversations
-- One row per root: named API conversations that lead to it.
SELECT d.root, count(*)
  FROM state_meta AS k INNER JOIN temp.doomed_sessions AS d ON d.id = k.value
 WHERE k.key > 'gateway.api.conversation.v1.' AND k.key < 'gateway.api.conversation.v1/' AND typeof(k.value) = 'text'
 GROUP BY d.root ORDER BY d.root;

-- name: children
-- One row per session that hangs under one that goes with another root, or with none: id, its root ('' for none), the parent's root.
SELECT s.id, coalesce(o.root, ''), d.root
  FROM temp.doomed_sessions AS d
 CROSS JOIN sessions AS s ON s.parent_session_id = d.id
  LEFT JOIN temp.doomed_sessions AS o ON o.id = s.id
 WHERE o.root IS NOT d.root
 ORDER BY d.root, s.id;

-- name: prompts
-- needs: system_prompts.hash sessions.system_prompt_hash sessions.tool_names
-- One row per stored prompt that only sessions use that go: its digest.
SELECT CAST(p.hash AS BLOB)
  FROM system_prompts AS p
 WHERE typeof(p.hash) = 'text'
   AND p.hash IN (SELECT s.system_prompt_hash FROM sessions AS s WHERE s.id IN (SELECT d.id FROM temp.doomed_sessions AS d)
                  UNION SELECT s.tool_names FROM sessions AS s WHERE s.id IN (SELECT d.id FROM temp.doomed_sessions AS d))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s
                    WHERE s.system_prompt_hash = p.hash AND s.id NOT IN (SELECT d.id FROM temp.doomed_sessions AS d))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s
                    WHERE s.tool_names = p.hash AND s.id NOT IN (SELECT d.id FROM temp.doomed_sessions AS d))
 ORDER BY p.hash;

-- name: prompts
-- needs: system_prompts.hash sessions.system_prompt_hash
-- The same for files whose sessions do not name their tools.
SELECT CAST(p.hash AS BLOB)
  FROM system_prompts AS p
 WHERE typeof(p.hash) = 'text'
   AND p.hash IN (SELECT s.system_prompt_hash FROM sessions AS s WHERE s.id IN (SELECT d.id FROM temp.doomed_sessions AS d))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s
                    WHERE s.system_prompt_hash = p.hash AND s.id NOT IN (SELECT d.id FROM temp.doomed_sessions AS d))
 ORDER BY p.hash;

-- name: ledger
-- needs: session_admissions.target_session_id worker_executions.session_id worker_receipts.execution_id
-- One row per session that goes: its root, admissions, workers, receipts, whether it has a tombstone.
SELECT d.id, d.root,
       (SELECT count(*) FROM session_admissions AS a WHERE a.target_session_id = d.id),
       (SELECT count(*) FROM worker_executions AS w WHERE w.session_id = d.id),
       (SELECT count(*) FROM worker_executions AS w INNER JOIN worker_receipts AS r ON r.execution_id = w.execution_id
         WHERE w.session_id = d.id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || d.id)
  FROM temp.doomed_sessions AS d
 ORDER BY d.id;

-- name: admissions
-- needs: session_admissions.target_session_id
-- One row per admission of a session that goes: session, admission, who asked, request, the three lists of its files (NULL where they
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
  FROM temp.doomed_sessions AS d CROSS JOIN session_admissions AS a ON a.target_session_id = d.id
 ORDER BY a.target_session_id, a.seq;

-- name: workers
-- needs: worker_executions.session_id worker_receipts.execution_id
-- One row per worker of a session that goes: session, whether its values and those of its receipts fit a terminal key, and whether
-- that key is there already.
SELECT CAST(w.session_id AS BLOB),
       'blob' NOT IN (typeof(w.execution_id), typeof(w.kind), typeof(w.owner_epoch), typeof(w.generation), typeof(w.status),
                      typeof(w.adoption_digest), typeof(w.last_sequence))
       AND NOT EXISTS (SELECT 1
                         FROM worker_receipts AS r
                        WHERE r.execution_id = w.execution_id
                          AND 'blob' IN (typeof(r.sequence), typeof(r.payload_digest), typeof(r.result_json))),
       EXISTS (SELECT 1 FROM state_meta AS k WHERE k.key = 'gateway.terminal_worker.v1.' || w.execution_id)
  FROM temp.doomed_sessions AS d CROSS JOIN worker_executions AS w ON w.session_id = d.id
 ORDER BY w.session_id, w.execution_id;

-- name: keys-there
-- Those of some keys that are stored already.
SELECT i.value
  FROM json_each(:keys) AS i
 WHERE EXISTS (SELECT 1 FROM state_meta AS k WHERE k.key = i.value)
 ORDER BY i.value;

-- name: changes
-- needs: session_admissions.target_session_id
-- One row per receipt of a change that still holds text and names a session that goes: its key, the root.
WITH kept AS MATERIALIZED (
  SELECT k.key, k.value
    FROM state_meta AS k
   WHERE k.key > 'gateway.mutation.v1.' AND k.key < 'gateway.mutation.v1/'
     AND CASE WHEN typeof(k.value) = 'text' AND json_valid(k.value)
              THEN json_type(k.value, '$.result') = 'object'
                   AND coalesce(json_extract(k.value, '$.result.target_message'), json_extract(k.value, '$.result.summary'),
                                json_extract(k.value, '$.result.title')) IS NOT NULL END
)
SELECT c.key, min(d.root)
  FROM kept AS c
 INNER JOIN temp.doomed_sessions AS d
    ON d.id IN (json_extract(c.value, '$.result.session_id'), json_extract(c.value, '$.result.target_message.session_id'),
                json_extract(c.value, '$.result.target_session_id'), json_extract(c.value, '$.result.previous_target_session_id'))
 GROUP BY c.key
 ORDER BY c.key;

-- name: message-texts
-- A template: the values of one column of messages that stay and that name the media folder.
SELECT CAST({column} AS BLOB)
  FROM messages
 WHERE instr(CAST({column} AS BLOB), CAST('native-inputs' AS BLOB))
   AND session_id NOT IN (SELECT d.id FROM temp.doomed_sessions AS d)
 ORDER BY id;

-- name: admission-texts
-- needs: session_admissions.payload_json
-- The payloads of admissions that stay and that name the media folder.
SELECT CAST(a.payload_json AS BLOB)
  FROM session_admissions AS a
 WHERE instr(CAST(a.payload_json AS BLOB), CAST('native-inputs' AS BLOB))
   AND a.target_session_id NOT IN (SELECT d.id FROM temp.doomed_sessions AS d)
 ORDER BY a.seq;

-- name: stored-texts
-- needs: session_admissions.target_session_id
-- The stored values that name the media folder, but for wishes to remove a file and for what goes or is shortened.
SELECT CAST(k.value AS BLOB)
  FROM state_meta AS k
 WHERE k.key NOT GLOB 'gateway.media.retired.v1.*'
   AND instr(CAST(k.value AS BLOB), CAST('native-inputs' AS BLOB))
   AND k.key NOT IN (SELECT 'gateway.admission.result.v1.' || a.admission_id
                       FROM session_admissions AS a
                      WHERE a.target_session_id IN (SELECT d.id FROM temp.doomed_sessions AS d))
   AND k.key NOT IN (SELECT 'goal:' || d.id FROM temp.doomed_sessions AS d)
 ORDER BY k.key;

-- name: held-lists
-- needs: session_admissions.payload_json
-- The three lists of files of each admission that stays and can be read.
SELECT CAST(json_array(json_extract(a.payload_json, '$.api_turn_v1.media'),
                       json_extract(a.payload_json, '$.attachments_v1.media'),
                       json_extract(a.payload_json, '$.native_text_v1.media')) AS BLOB)
  FROM session_admissions AS a
 WHERE CASE WHEN typeof(a.payload_json) = 'text' AND json_valid(a.payload_json)
            THEN instr(a.payload_json, '_v1') END
   AND a.target_session_id NOT IN (SELECT d.id FROM temp.doomed_sessions AS d)
 ORDER BY a.seq;

-- name: shorten-results
-- The stored results of the admissions keep the answer and lose the copy of the conversation.
UPDATE state_meta
   SET value = json_set(json_remove(value, '$.result.messages', '$.result.last_reasoning', '$.result.tools'),
                        '$.result.messages', json('[]'))
 WHERE key IN (SELECT 'gateway.admission.result.v1.' || a.admission_id
                 FROM session_admissions AS a
                WHERE a.target_session_id IN (SELECT j.value FROM json_each(:ids) AS j))
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value)
            THEN json_type(value, '$.result') = 'object'
                 AND (json_type(value, '$.result.last_reasoning') IS NOT NULL
                      OR json_type(value, '$.result.tools') IS NOT NULL
                      OR coalesce(json_extract(value, '$.result.messages'), '[]') IS NOT '[]') END;

-- name: shorten-changes
-- Receipts of changes keep what was done and lose the text.
UPDATE state_meta
   SET value = json_replace(value, '$.result.target_message', NULL, '$.result.summary', NULL, '$.result.title', NULL)
 WHERE key IN (SELECT i.value FROM json_each(:keys) AS i)
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value)
            THEN json_type(value, '$.result') = 'object'
                 AND coalesce(json_extract(value, '$.result.target_message'), json_extract(value, '$.result.summary'),
                              json_extract(value, '$.result.title')) IS NOT NULL END;

-- name: retire-media
-- The files that something still names may go once nothing does. Each of :files is [key, admission, list, place].
INSERT INTO state_meta (key, value)
SELECT json_extract(f.value, '$[0]'),
       json_extract(a.payload_json, '$.' || json_extract(f.value, '$[2]') || '.media[' || json_extract(f.value, '$[3]') || ']')
  FROM json_each(:files) AS f
 INNER JOIN session_admissions AS a ON a.admission_id = json_extract(f.value, '$[1]')
 WHERE a.target_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND a.status = 'terminal';

-- name: drop-retired-media
-- The wishes to remove files that go now.
DELETE FROM state_meta WHERE key IN (SELECT i.value FROM json_each(:keys) AS i);

-- name: retire-admissions
-- The admissions go on under terminal keys, without what the user wrote.
INSERT INTO state_meta (key, value)
SELECT 'gateway.terminal_admission.v1.' || a.admission_id,
       json_object('admission_id', a.admission_id, 'generation', a.generation, 'intent', a.intent, 'lineage_json', '[]',
                   'outcome', a.outcome, 'owner_epoch', a.owner_epoch, 'payload_digest', a.payload_digest, 'payload_json', '{}',
                   'principal_id', a.principal_id, 'request_id', a.request_id, 'seq', a.seq, 'status', a.status,
                   'target_session_id', a.target_session_id)
  FROM session_admissions AS a
 WHERE a.target_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND a.status = 'terminal';

-- name: retire-identities
-- The requests behind them lead there. Each of :identities is [admission, key].
INSERT INTO state_meta (key, value)
SELECT json_extract(i.value, '$[1]'), json_quote(a.admission_id)
  FROM json_each(:identities) AS i
 INNER JOIN session_admissions AS a ON a.admission_id = json_extract(i.value, '$[0]')
 WHERE a.target_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
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
 WHERE w.session_id = :id
   AND w.status = 'terminal';

-- name: bury
-- The tombstones that keep the ids from being used anew.
INSERT INTO state_meta (key, value)
SELECT 'gateway.retired_session.v1.' || j.value, '{}'
  FROM json_each(:ids) AS j
 WHERE NOT EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || j.value);

-- name: drop-receipts
-- The receipts of the workers.
DELETE FROM worker_receipts
 WHERE execution_id IN (SELECT w.execution_id FROM worker_executions AS w
                         WHERE w.session_id IN (SELECT j.value FROM json_each(:ids) AS j) AND w.status = 'terminal');

-- name: drop-workers
-- The workers.
DELETE FROM worker_executions
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j) AND status = 'terminal';

-- name: drop-admissions
-- The admissions.
DELETE FROM session_admissions
 WHERE target_session_id IN (SELECT j.value FROM json_each(:ids) AS j) AND status = 'terminal';

-- name: drop-settings
-- Goals, API settings, API bindings and policies kept under the ids.
DELETE FROM state_meta
 WHERE key IN (SELECT p.value || j.value
                 FROM json_each('["goal:", "gateway.api.settings.v1.", "gateway.api.binding.v1.", "gateway.local_policy.v1:"]') AS p
                CROSS JOIN json_each(:ids) AS j);

-- name: drop-policies
-- Policies of other owners that lead to one of the sessions.
DELETE FROM state_meta
 WHERE key > 'gateway.local_policy.v1:' AND key < 'gateway.local_policy.v1;'
   AND CASE WHEN typeof(value) = 'text' AND json_valid(value) THEN json_extract(value, '$.entry.session_id') END
       IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-conversations
-- Named API conversations that lead to one of the sessions.
DELETE FROM state_meta
 WHERE key > 'gateway.api.conversation.v1.' AND key < 'gateway.api.conversation.v1/' AND typeof(value) = 'text'
   AND value IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-routes
-- Chat routes that lead to one of the sessions.
DELETE FROM gateway_routing
 WHERE CASE WHEN typeof(entry_json) = 'text' AND json_valid(entry_json) THEN json_extract(entry_json, '$.session_id') END
       IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-locks
-- Locks of the sessions that nobody holds any more.
DELETE FROM compression_locks WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-leases
-- Turn leases of the sessions that nobody holds any more.
DELETE FROM session_turn_leases WHERE conversation_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-messages
-- The messages, from one row id to another; the index of sessions leads to them.
DELETE FROM messages
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND +id BETWEEN :first AND :last;

-- name: message-rows
-- One row per message that `drop-messages` would remove: its id and its bytes.
SELECT m.id,
       coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
       + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0)
  FROM messages AS m
 WHERE m.session_id IN (SELECT j.value FROM json_each(:ids) AS j)
 ORDER BY m.id;

-- name: drop-usage
-- Usage rows by model.
DELETE FROM session_model_usage WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-daily
-- Usage rows by day.
DELETE FROM session_daily_usage WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-bindings
-- Topics.
DELETE FROM telegram_dm_topic_bindings WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: detach-children
-- needs: sessions.runtime_revision
-- What hangs under one of the sessions and stays becomes a root; the runtime is told by the revision.
UPDATE sessions
   SET parent_session_id = NULL, runtime_revision = runtime_revision + 1
 WHERE parent_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND id NOT IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: detach-children
-- The same for files without a runtime.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE parent_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND id NOT IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: drop-sessions
-- The rows of the sessions, whose messages are gone by then.
DELETE FROM sessions
 WHERE id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = sessions.id);

-- name: drop-prompts
-- needs: sessions.tool_names
-- Stored prompts that no session uses any more.
DELETE FROM system_prompts
 WHERE hash IN (SELECT j.value FROM json_each(:hashes) AS j)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.tool_names = system_prompts.hash);

-- name: drop-prompts
-- The same for files whose sessions do not name their tools.
DELETE FROM system_prompts
 WHERE hash IN (SELECT j.value FROM json_each(:hashes) AS j)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash);
