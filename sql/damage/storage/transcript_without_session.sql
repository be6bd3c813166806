-- Sessions that only a transcript on disk still tells of, and how their rows are made again. The messages come by a temporary table:
-- Python reads the files, for a plan must not hold what was said.

-- name: known
-- One row per id of a list that the store knows: it has a row or messages, or a tombstone says that its user deleted it.
SELECT CAST(j.value AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS j
 WHERE j.value IN (SELECT s.id FROM sessions AS s NOT INDEXED)
    OR EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = j.value)
    OR EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || j.value)
 ORDER BY j.value;

-- name: standing
-- Whether one id has a session row, and whether a tombstone says that its user deleted it.
SELECT EXISTS (SELECT 1 FROM sessions AS s NOT INDEXED WHERE s.id = CAST(:id AS TEXT)),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || :id);

-- name: left-like
-- One row per session without a row of which messages are left, its id from one word up to another.
SELECT DISTINCT CAST(m.session_id AS BLOB)
  FROM messages AS m
 WHERE m.session_id BETWEEN :word AND :next
   AND m.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 ORDER BY m.session_id;

-- name: survivors
-- needs: messages.active
-- One row per message that is left of a session: id, who said what and called what, its time where that can be one, whether it is active.
SELECT m.id, CAST(m.role AS BLOB), CAST(m.content AS BLOB), CAST(m.tool_call_id AS BLOB), CAST(m.tool_calls AS BLOB),
       CASE WHEN typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9 THEN m.timestamp END,
       m.active IS NOT 0
  FROM messages AS m
 WHERE m.session_id = CAST(:id AS TEXT)
 ORDER BY m.id;

-- name: survivors
-- The same for files older than the active flag.
SELECT m.id, CAST(m.role AS BLOB), CAST(m.content AS BLOB), CAST(m.tool_call_id AS BLOB), CAST(m.tool_calls AS BLOB),
       CASE WHEN typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9 THEN m.timestamp END,
       1
  FROM messages AS m
 WHERE m.session_id = CAST(:id AS TEXT)
 ORDER BY m.id;

-- name: taken
-- One row per message id between two others, highest first.
SELECT m.id
  FROM messages AS m
 WHERE m.id > :after AND m.id < :before
 ORDER BY m.id DESC;

-- name: last-id
-- The highest message id that was ever given.
SELECT max(coalesce((SELECT q.seq FROM sqlite_sequence AS q WHERE q.name = 'messages'), 0),
           coalesce((SELECT max(m.id) FROM messages AS m), 0));

-- name: children
-- One row per session that names this one as its parent: id, whether it is a helper's run, its start where that can be a time, whether one
-- of its markers names the parent.
SELECT CAST(c.id AS BLOB),
       c.source IN ('subagent', 'tool'),
       CASE WHEN typeof(c.started_at) IN ('integer', 'real') AND c.started_at > 0 AND c.started_at < 4.2e9 THEN c.started_at END,
       CASE WHEN json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._branched_from') IS c.parent_session_id
                 OR json_extract(c.model_config, '$._delegate_from') IS c.parent_session_id
                 OR json_extract(c.model_config, '$._reset_from') IS c.parent_session_id
            ELSE 0 END
  FROM sessions AS c
 WHERE c.parent_session_id = CAST(:id AS TEXT)
 ORDER BY c.id;

-- name: parent
-- One row where the parent that a transcript names is there and was closed for this session: compressed with nobody who went on, or
-- branched before it started. Under any other parent no list would show the session.
SELECT 1
  FROM sessions AS p
 WHERE p.id = CAST(:parent AS TEXT)
   AND ((p.end_reason = 'compression'
         AND NOT EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = p.id))
        OR (p.end_reason = 'branched' AND p.ended_at <= :started_at));

-- name: routed
-- needs: gateway_routing.entry_json
-- One row per routing entry that can be read: the session it names, its platform, and the platform of its origin.
SELECT CAST(json_extract(r.entry_json, '$.session_id') AS BLOB),
       CAST(json_extract(r.entry_json, '$.platform') AS BLOB),
       CAST(json_extract(r.entry_json, '$.origin.platform') AS BLOB)
  FROM gateway_routing AS r
 WHERE json_valid(r.entry_json)
 ORDER BY r.rowid;

-- name: told-table
-- The messages that transcripts tell and the store lacks, for the time of this connection: the id each will get, and its session.
CREATE TEMP TABLE IF NOT EXISTS told_messages (
    id INTEGER PRIMARY KEY,
    session_id TEXT,
    role TEXT,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    timestamp REAL,
    finish_reason TEXT,
    reasoning TEXT,
    reasoning_content TEXT,
    reasoning_details TEXT,
    codex_reasoning_items TEXT,
    codex_message_items TEXT,
    active INTEGER,
    compacted INTEGER
);

-- name: forget-told
-- Nothing is left of an earlier look.
DELETE FROM temp.told_messages;

-- name: tell
-- One message of a transcript.
INSERT INTO temp.told_messages (id, session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, finish_reason,
                                reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items,
                                active, compacted)
VALUES (:id, :session_id, :role, :content, :tool_call_id, :tool_calls, :tool_name, :timestamp, :finish_reason,
        :reasoning, :reasoning_content, :reasoning_details, :codex_reasoning_items, :codex_message_items,
        :active, :compacted);

-- name: moved-table
-- The messages that are left and move behind what the transcript tells from before them: the id each has, and the one it gets.
CREATE TEMP TABLE IF NOT EXISTS moved_messages (id INTEGER PRIMARY KEY, new_id INTEGER, session_id TEXT);

-- name: forget-moved
-- Nothing is left of an earlier look.
DELETE FROM temp.moved_messages;

-- name: move
-- One message that moves.
INSERT INTO temp.moved_messages (id, new_id, session_id) VALUES (:id, :new_id, :session_id);

-- name: move-rows
-- One row per id that a message leaves, and one per id that it gets: both change what search finds.
SELECT t.id, 0 FROM temp.moved_messages AS t WHERE t.session_id = CAST(:id AS TEXT)
 UNION ALL
SELECT t.new_id, 0 FROM temp.moved_messages AS t WHERE t.session_id = CAST(:id AS TEXT)
 ORDER BY 1;

-- name: move-messages
-- needs: messages.display_order
-- Messages get their new ids; the first of the same identity is named by its new one.
UPDATE messages
   SET id = (SELECT t.new_id FROM temp.moved_messages AS t WHERE t.id = messages.id),
       display_order = coalesce((SELECT t.new_id FROM temp.moved_messages AS t WHERE t.id = messages.display_order), display_order)
 WHERE session_id = CAST(:id AS TEXT)
   AND id BETWEEN :first AND :last
   AND id IN (SELECT t.id FROM temp.moved_messages AS t WHERE t.session_id = CAST(:id AS TEXT));

-- name: move-messages
-- Messages get their new ids.
UPDATE messages
   SET id = (SELECT t.new_id FROM temp.moved_messages AS t WHERE t.id = messages.id)
 WHERE session_id = CAST(:id AS TEXT)
   AND id BETWEEN :first AND :last
   AND id IN (SELECT t.id FROM temp.moved_messages AS t WHERE t.session_id = CAST(:id AS TEXT));

-- name: rebuild-session
-- needs: sessions.archived sessions.hidden sessions.pinned sessions.profile_name sessions.last_activity_at
-- The session row again, where there is none: listed, open unless compression closed it.
INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason, message_count, tool_call_count,
                      archived, hidden, pinned, profile_name, last_activity_at)
SELECT CAST(:id AS TEXT), :source, :parent, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason, :message_count, :tool_call_count,
       0, 0, 0, :profile_name, :last_activity_at
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s NOT INDEXED WHERE s.id = CAST(:id AS TEXT));

-- name: rebuild-session
-- needs: sessions.archived sessions.profile_name
-- The same where sessions can be archived and belong to a profile.
INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason, message_count, tool_call_count,
                      archived, profile_name)
SELECT CAST(:id AS TEXT), :source, :parent, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason, :message_count, :tool_call_count,
       0, :profile_name
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s NOT INDEXED WHERE s.id = CAST(:id AS TEXT));

-- name: rebuild-session
-- needs: sessions.archived
-- The same where sessions can be archived.
INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason, message_count, tool_call_count, archived)
SELECT CAST(:id AS TEXT), :source, :parent, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason, :message_count, :tool_call_count, 0
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s NOT INDEXED WHERE s.id = CAST(:id AS TEXT));

-- name: rebuild-session
-- The same for the oldest files.
INSERT INTO sessions (id, source, parent_session_id, started_at, ended_at, end_reason, message_count, tool_call_count)
SELECT CAST(:id AS TEXT), :source, :parent, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason, :message_count, :tool_call_count
 WHERE NOT EXISTS (SELECT 1 FROM sessions AS s NOT INDEXED WHERE s.id = CAST(:id AS TEXT));

-- name: rebuild-rows
-- One row per message that `rebuild-messages` adds: its id and its bytes.
SELECT t.id,
       coalesce(octet_length(t.content), 0) + coalesce(octet_length(t.tool_calls), 0)
       + coalesce(octet_length(t.reasoning), 0) + coalesce(octet_length(t.reasoning_details), 0)
  FROM temp.told_messages AS t
 WHERE t.session_id = CAST(:id AS TEXT)
 ORDER BY t.id;

-- name: rebuild-messages
-- needs: messages.active messages.compacted
-- The messages of one session that only its transcript tells, from one id to another.
INSERT INTO messages (id, session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, finish_reason,
                      reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, active, compacted)
SELECT t.id, t.session_id, t.role, t.content, t.tool_call_id, t.tool_calls, t.tool_name, t.timestamp, t.finish_reason,
       t.reasoning, t.reasoning_content, t.reasoning_details, t.codex_reasoning_items, t.codex_message_items, t.active, t.compacted
  FROM temp.told_messages AS t
 WHERE t.session_id = CAST(:id AS TEXT)
   AND t.id BETWEEN :first AND :last
 ORDER BY t.id;

-- name: rebuild-messages
-- The same for files older than these flags.
INSERT INTO messages (id, session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, finish_reason,
                      reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items)
SELECT t.id, t.session_id, t.role, t.content, t.tool_call_id, t.tool_calls, t.tool_name, t.timestamp, t.finish_reason,
       t.reasoning, t.reasoning_content, t.reasoning_details, t.codex_reasoning_items, t.codex_message_items
  FROM temp.told_messages AS t
 WHERE t.session_id = CAST(:id AS TEXT)
   AND t.id BETWEEN :first AND :last
 ORDER BY t.id;

-- name: detach-child
-- A session without a marker leaves the parent that was just made again: under an open parent no list would show it.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE id IN (CAST(:child AS TEXT), :child)
   AND parent_session_id = CAST(:id AS TEXT);
