-- Messages whose session row is gone. The variants with idx_messages_session jump from one session id to the next, so
-- they read pages of the index in proportion to the sessions; only rows of missing sessions are read themselves.

-- name: find
-- needs: messages.active index:idx_messages_session
-- One row per missing session id: how it is stored, whether a tombstone names it, its rows, active rows, tool calls,
-- bytes, first and last time that can be a time, first and last row id.
WITH RECURSIVE
  ids(id) AS (
    SELECT min(session_id) FROM messages INDEXED BY idx_messages_session
    UNION ALL
    SELECT (SELECT m.session_id
              FROM messages AS m INDEXED BY idx_messages_session
             WHERE m.session_id > ids.id
             ORDER BY m.session_id
             LIMIT 1)
      FROM ids
     WHERE ids.id IS NOT NULL),
  orphans AS MATERIALIZED (
    SELECT m.id, m.session_id, m.active IS NOT 0 AS active,
           CASE WHEN m.tool_calls IS NULL OR NOT json_valid(m.tool_calls) THEN 0
                WHEN json_type(m.tool_calls) = 'array' THEN json_array_length(m.tool_calls)
                ELSE 1 END AS calls,
           coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
           + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0) AS bytes,
           CASE WHEN typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9
                THEN m.timestamp END AS moment
      FROM ids
     CROSS JOIN messages AS m INDEXED BY idx_messages_session ON m.session_id = ids.id
     WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = ids.id))
SELECT CAST(session_id AS BLOB), typeof(session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || session_id),
       count(*), sum(active), sum(calls), sum(CASE WHEN active THEN calls ELSE 0 END), sum(bytes),
       min(moment), max(moment), min(id), max(id)
  FROM orphans
 GROUP BY session_id
 ORDER BY session_id;

-- name: find
-- needs: index:idx_messages_session
-- The same for files older than the active flag: every row is active.
WITH RECURSIVE
  ids(id) AS (
    SELECT min(session_id) FROM messages INDEXED BY idx_messages_session
    UNION ALL
    SELECT (SELECT m.session_id
              FROM messages AS m INDEXED BY idx_messages_session
             WHERE m.session_id > ids.id
             ORDER BY m.session_id
             LIMIT 1)
      FROM ids
     WHERE ids.id IS NOT NULL),
  orphans AS MATERIALIZED (
    SELECT m.id, m.session_id,
           CASE WHEN m.tool_calls IS NULL OR NOT json_valid(m.tool_calls) THEN 0
                WHEN json_type(m.tool_calls) = 'array' THEN json_array_length(m.tool_calls)
                ELSE 1 END AS calls,
           coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
           + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0) AS bytes,
           CASE WHEN typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9
                THEN m.timestamp END AS moment
      FROM ids
     CROSS JOIN messages AS m INDEXED BY idx_messages_session ON m.session_id = ids.id
     WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = ids.id))
SELECT CAST(session_id AS BLOB), typeof(session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || session_id),
       count(*), count(*), sum(calls), sum(calls), sum(bytes),
       min(moment), max(moment), min(id), max(id)
  FROM orphans
 GROUP BY session_id
 ORDER BY session_id;

-- name: find
-- needs: messages.active
-- The same from the tables alone: for a file without the index, and for a second look that no stale index can
-- deceive.
WITH
  orphans AS MATERIALIZED (
    SELECT m.id, m.session_id, m.active IS NOT 0 AS active,
           CASE WHEN m.tool_calls IS NULL OR NOT json_valid(m.tool_calls) THEN 0
                WHEN json_type(m.tool_calls) = 'array' THEN json_array_length(m.tool_calls)
                ELSE 1 END AS calls,
           coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
           + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0) AS bytes,
           CASE WHEN typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9
                THEN m.timestamp END AS moment
      FROM messages AS m NOT INDEXED
     WHERE m.session_id IS NOT NULL
       AND m.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL))
SELECT CAST(session_id AS BLOB), typeof(session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || session_id),
       count(*), sum(active), sum(calls), sum(CASE WHEN active THEN calls ELSE 0 END), sum(bytes),
       min(moment), max(moment), min(id), max(id)
  FROM orphans
 GROUP BY session_id
 ORDER BY session_id;

-- name: find
-- The same from the tables alone, for files older than the active flag.
WITH
  orphans AS MATERIALIZED (
    SELECT m.id, m.session_id,
           CASE WHEN m.tool_calls IS NULL OR NOT json_valid(m.tool_calls) THEN 0
                WHEN json_type(m.tool_calls) = 'array' THEN json_array_length(m.tool_calls)
                ELSE 1 END AS calls,
           coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
           + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0) AS bytes,
           CASE WHEN typeof(m.timestamp) IN ('integer', 'real') AND m.timestamp > 0 AND m.timestamp < 4.2e9
                THEN m.timestamp END AS moment
      FROM messages AS m NOT INDEXED
     WHERE m.session_id IS NOT NULL
       AND m.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL))
SELECT CAST(session_id AS BLOB), typeof(session_id),
       EXISTS (SELECT 1 FROM state_meta AS t WHERE t.key = 'gateway.retired_session.v1.' || session_id),
       count(*), count(*), sum(calls), sum(calls), sum(bytes),
       min(moment), max(moment), min(id), max(id)
  FROM orphans
 GROUP BY session_id
 ORDER BY session_id;

-- name: totals
-- How many messages there are, and whether there is any session: asked only where messages are orphaned.
SELECT (SELECT count(*) FROM messages), EXISTS (SELECT 1 FROM sessions);

-- name: children
-- One row per session whose parent row is gone: the parent, the session, whether it is a helper's run, its start
-- where that can be a time, and whether one of its markers names that parent.
SELECT CAST(c.parent_session_id AS BLOB), typeof(c.parent_session_id), CAST(c.id AS BLOB), typeof(c.id),
       c.source IN ('subagent', 'tool'),
       CASE WHEN typeof(c.started_at) IN ('integer', 'real') AND c.started_at > 0 AND c.started_at < 4.2e9
            THEN c.started_at END,
       CASE WHEN json_valid(c.model_config)
            THEN json_extract(c.model_config, '$._branched_from') IS c.parent_session_id
                 OR json_extract(c.model_config, '$._delegate_from') IS c.parent_session_id
                 OR json_extract(c.model_config, '$._reset_from') IS c.parent_session_id
            ELSE 0 END
  FROM sessions AS c NOT INDEXED
 WHERE c.parent_session_id IS NOT NULL
   AND c.parent_session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 ORDER BY c.parent_session_id, c.id;

-- name: usage
-- needs: session_model_usage.session_id
-- One row per missing session id: how many usage rows by model name it.
SELECT CAST(u.session_id AS BLOB), typeof(u.session_id), count(*)
  FROM session_model_usage AS u NOT INDEXED
 WHERE u.session_id IS NOT NULL
   AND u.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 GROUP BY u.session_id
 ORDER BY u.session_id;

-- name: daily
-- needs: session_daily_usage.session_id
-- One row per missing session id: how many usage rows by day name it.
SELECT CAST(u.session_id AS BLOB), typeof(u.session_id), count(*)
  FROM session_daily_usage AS u NOT INDEXED
 WHERE u.session_id IS NOT NULL
   AND u.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 GROUP BY u.session_id
 ORDER BY u.session_id;

-- name: bindings
-- needs: telegram_dm_topic_bindings.session_id
-- One row per missing session id: how many topic bindings name it.
SELECT CAST(b.session_id AS BLOB), typeof(b.session_id), count(*)
  FROM telegram_dm_topic_bindings AS b NOT INDEXED
 WHERE b.session_id IS NOT NULL
   AND b.session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
 GROUP BY b.session_id
 ORDER BY b.session_id;

-- name: routed
-- needs: gateway_routing.entry_json
-- One row per routing entry that can be read: the session it names, its platform, and the platform of its origin.
SELECT CAST(json_extract(r.entry_json, '$.session_id') AS BLOB),
       CAST(json_extract(r.entry_json, '$.platform') AS BLOB),
       CAST(json_extract(r.entry_json, '$.origin.platform') AS BLOB)
  FROM gateway_routing AS r
 WHERE json_valid(r.entry_json)
 ORDER BY r.rowid;

-- name: present
-- One row per id of a list that has a session row in this file; asked of other profiles.
SELECT CAST(s.id AS BLOB)
  FROM sessions AS s
 WHERE s.id IN (SELECT j.value FROM json_each(:ids) AS j)
 ORDER BY s.id;

-- name: adopt
-- needs: sessions.archived sessions.hidden sessions.pinned sessions.profile_name sessions.last_activity_at
-- The session row again, for messages that still have none; listed, open unless compression closed it, without
-- parent.
INSERT INTO sessions (id, source, started_at, ended_at, end_reason, message_count, tool_call_count,
                      archived, hidden, pinned, profile_name, last_activity_at)
SELECT CAST(:id AS TEXT), :source, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason,
       :message_count, :tool_call_count, 0, 0, 0, :profile_name, :last_activity_at
 WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = CAST(:id AS TEXT))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: adopt
-- needs: sessions.archived sessions.profile_name
-- The same where sessions can be archived and belong to a profile.
INSERT INTO sessions (id, source, started_at, ended_at, end_reason, message_count, tool_call_count,
                      archived, profile_name)
SELECT CAST(:id AS TEXT), :source, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason,
       :message_count, :tool_call_count, 0, :profile_name
 WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = CAST(:id AS TEXT))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: adopt
-- needs: sessions.archived
-- The same where sessions can be archived.
INSERT INTO sessions (id, source, started_at, ended_at, end_reason, message_count, tool_call_count, archived)
SELECT CAST(:id AS TEXT), :source, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason,
       :message_count, :tool_call_count, 0
 WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = CAST(:id AS TEXT))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: adopt
-- The same for the oldest files.
INSERT INTO sessions (id, source, started_at, ended_at, end_reason, message_count, tool_call_count)
SELECT CAST(:id AS TEXT), :source, coalesce(:started_at, unixepoch('subsec')), :ended_at, :end_reason,
       :message_count, :tool_call_count
 WHERE EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = CAST(:id AS TEXT))
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = CAST(:id AS TEXT));

-- name: detach-child
-- A session without a marker leaves the parent that was just adopted: under an open parent no list would show it.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE id IN (CAST(:child AS TEXT), :child)
   AND parent_session_id = CAST(:id AS TEXT);

-- name: purge
-- Messages of one missing session, from one row id to another; an id that is not text may be stored either way.
DELETE FROM messages
 WHERE session_id IN (CAST(:id AS TEXT), :id)
   AND id BETWEEN :first AND :last
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = messages.session_id);

-- name: purge-rows
-- One row per message that `purge` would remove: its id and its bytes.
SELECT m.id,
       coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
       + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0)
  FROM messages AS m
 WHERE m.session_id IN (CAST(:id AS TEXT), :id)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = m.session_id)
 ORDER BY m.id;

-- name: purge-usage
-- Usage rows by model of the missing session.
DELETE FROM session_model_usage
 WHERE session_id = CAST(:id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = session_model_usage.session_id);

-- name: purge-daily
-- Usage rows by day of the missing session.
DELETE FROM session_daily_usage
 WHERE session_id = CAST(:id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = session_daily_usage.session_id);

-- name: purge-bindings
-- Topic bindings of the missing session.
DELETE FROM telegram_dm_topic_bindings
 WHERE session_id = CAST(:id AS TEXT)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = telegram_dm_topic_bindings.session_id);
