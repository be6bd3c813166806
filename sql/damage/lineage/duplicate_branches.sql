-- Branches of one parent that hold as many messages as each other: whether they hold the same ones is asked of their rows.

-- name: find
-- needs: sessions.pinned
-- One row per branch that a sibling equals in number of messages: parent, branch, its messages, start where it is a number, and
-- whether nothing of its own ties it: no title, no pin, nothing under it, no marker that names it.
WITH branches AS MATERIALIZED (
  SELECT child.id, child.parent_session_id, child.started_at,
         child.title IS NULL AND child.pinned IS NOT 1 AS plain,
         (SELECT count(*) FROM messages AS m WHERE m.session_id = child.id) AS messages
    FROM sessions AS child
   INNER JOIN sessions AS parent ON parent.id = child.parent_session_id
   WHERE typeof(child.id) = 'text' AND typeof(parent.id) = 'text' AND child.id <> parent.id
     AND CASE WHEN typeof(child.model_config) = 'text' AND json_valid(child.model_config)
              THEN json_extract(child.model_config, '$._delegate_from') IS NULL
                   AND json_extract(child.model_config, '$._reset_from') IS NULL
                   AND (json_extract(child.model_config, '$._branched_from') IS child.parent_session_id
                        OR (json_extract(child.model_config, '$._branched_from') IS NULL
                            AND child.source NOT IN ('subagent', 'tool') AND parent.end_reason IS NOT 'compression'))
              ELSE child.model_config IS NULL
                   AND child.source NOT IN ('subagent', 'tool') AND parent.end_reason IS NOT 'compression' END
), named AS MATERIALIZED (
  SELECT json_extract(s.model_config, '$.' || n.value) AS id
    FROM sessions AS s CROSS JOIN json_each('["_branched_from", "_delegate_from", "_reset_from"]') AS n
   WHERE CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
              THEN json_type(s.model_config, '$.' || n.value) END = 'text'
)
SELECT CAST(b.parent_session_id AS BLOB), CAST(b.id AS BLOB), b.messages,
       CASE WHEN typeof(b.started_at) IN ('integer', 'real') THEN b.started_at END,
       b.plain
       AND NOT EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = b.id)
       AND b.id NOT IN (SELECT n.id FROM named AS n)
  FROM branches AS b
 WHERE b.messages > 0
   AND (b.parent_session_id, b.messages) IN (SELECT o.parent_session_id, o.messages FROM branches AS o
                                              GROUP BY o.parent_session_id, o.messages HAVING count(*) > 1)
 ORDER BY b.parent_session_id, b.id;

-- name: find
-- The same for files whose sessions cannot be pinned.
WITH branches AS MATERIALIZED (
  SELECT child.id, child.parent_session_id, child.started_at, child.title IS NULL AS plain,
         (SELECT count(*) FROM messages AS m WHERE m.session_id = child.id) AS messages
    FROM sessions AS child
   INNER JOIN sessions AS parent ON parent.id = child.parent_session_id
   WHERE typeof(child.id) = 'text' AND typeof(parent.id) = 'text' AND child.id <> parent.id
     AND CASE WHEN typeof(child.model_config) = 'text' AND json_valid(child.model_config)
              THEN json_extract(child.model_config, '$._delegate_from') IS NULL
                   AND json_extract(child.model_config, '$._reset_from') IS NULL
                   AND (json_extract(child.model_config, '$._branched_from') IS child.parent_session_id
                        OR (json_extract(child.model_config, '$._branched_from') IS NULL
                            AND child.source NOT IN ('subagent', 'tool') AND parent.end_reason IS NOT 'compression'))
              ELSE child.model_config IS NULL
                   AND child.source NOT IN ('subagent', 'tool') AND parent.end_reason IS NOT 'compression' END
), named AS MATERIALIZED (
  SELECT json_extract(s.model_config, '$.' || n.value) AS id
    FROM sessions AS s CROSS JOIN json_each('["_branched_from", "_delegate_from", "_reset_from"]') AS n
   WHERE CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
              THEN json_type(s.model_config, '$.' || n.value) END = 'text'
)
SELECT CAST(b.parent_session_id AS BLOB), CAST(b.id AS BLOB), b.messages,
       CASE WHEN typeof(b.started_at) IN ('integer', 'real') THEN b.started_at END,
       b.plain
       AND NOT EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = b.id)
       AND b.id NOT IN (SELECT n.id FROM named AS n)
  FROM branches AS b
 WHERE b.messages > 0
   AND (b.parent_session_id, b.messages) IN (SELECT o.parent_session_id, o.messages FROM branches AS o
                                              GROUP BY o.parent_session_id, o.messages HAVING count(*) > 1)
 ORDER BY b.parent_session_id, b.id;

-- name: used
-- needs: session_model_usage.session_id
-- The sessions of a list that a model was asked in.
SELECT DISTINCT u.session_id
  FROM session_model_usage AS u
 WHERE u.session_id IN (SELECT j.value FROM json_each(:ids) AS j)
 ORDER BY u.session_id;

-- name: used
-- The same for files that do not account by model.
SELECT s.id
  FROM sessions AS s
 WHERE s.id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND s.input_tokens > 0
 ORDER BY s.id;

-- name: purge-messages
-- Messages of the removed sessions, from one row id to another.
DELETE FROM messages
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND id BETWEEN :first AND :last;

-- name: purge-rows
-- One row per message that `purge-messages` would remove: its id and its bytes.
SELECT m.id,
       coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
       + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0)
  FROM messages AS m
 WHERE m.session_id IN (SELECT j.value FROM json_each(:ids) AS j)
 ORDER BY m.id;

-- name: purge-usage
-- Usage rows by model of the removed sessions.
DELETE FROM session_model_usage
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: purge-daily
-- Usage rows by day of the removed sessions.
DELETE FROM session_daily_usage
 WHERE session_id IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: detach-children
-- What hangs under a removed session becomes a root.
UPDATE sessions
   SET parent_session_id = NULL
 WHERE parent_session_id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND id NOT IN (SELECT j.value FROM json_each(:ids) AS j);

-- name: purge-sessions
-- The rows of the sessions, whose messages are gone by then.
DELETE FROM sessions
 WHERE id IN (SELECT j.value FROM json_each(:ids) AS j)
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = sessions.id);

-- name: purge-prompts
-- needs: sessions.tool_names
-- Stored prompts that only the removed sessions used.
DELETE FROM system_prompts
 WHERE hash IN (SELECT j.value FROM json_each(:hashes) AS j)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE system_prompts.hash IN (s.system_prompt_hash, s.tool_names));

-- name: purge-prompts
-- The same for files whose sessions do not name their tools.
DELETE FROM system_prompts
 WHERE hash IN (SELECT j.value FROM json_each(:hashes) AS j)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash);
