-- Values that mean nothing in their column. Every one is only reported. utf8_broken(X) is the tool's own (hermes_dbtools/utf8.py).

-- name: numbers
-- One row per value of one column that is neither NULL nor a number from 0 to a limit: row, session.
SELECT t.rowid, CAST(t.{owner} AS BLOB)
  FROM {table} AS t
 WHERE t.{column} IS NOT NULL
   AND NOT (typeof(t.{column}) IN ('integer', 'real') AND t.{column} BETWEEN 0 AND :limit)
   AND NOT utf8_broken(CAST(CASE WHEN typeof(t.{column}) = 'text' THEN t.{column} END AS BLOB))
 ORDER BY t.rowid;

-- name: bytes-for-text
-- One row per value of one column of text that is kept as bytes: row, session.
SELECT t.rowid, CAST(t.{owner} AS BLOB)
  FROM {table} AS t
 WHERE typeof(t.{column}) = 'blob'
 ORDER BY t.rowid;

-- name: roles
-- One row per named message whose role no release writes: message, session.
SELECT m.id, CAST(m.session_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 WHERE m.{column} NOT IN ('user', 'assistant', 'tool', 'system', 'developer', 'session_meta', 'unknown')
   AND NOT utf8_broken(CAST(m.{column} AS BLOB))
 ORDER BY m.id;

-- name: message-flags
-- One row per named message whose flag is neither NULL nor 0 nor 1: message, session.
SELECT m.id, CAST(m.session_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 WHERE m.{column} NOT IN (0, 1)
 ORDER BY m.id;

-- name: token-counts
-- One row per named message whose number of tokens is none: message, session.
SELECT m.id, CAST(m.session_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 WHERE (m.{column} BETWEEN 0 AND 1000000000000) IS FALSE
 ORDER BY m.id;

-- name: handoffs
-- needs: sessions.handoff_state sessions.last_activity_at
-- One row per session whose hand-over is in a state that no release writes, or has not ended although the session is idle: session,
-- whether the state is known, the state where it is.
SELECT CAST(s.id AS BLOB), s.handoff_state IN ('pending', 'running'),
       CASE WHEN s.handoff_state IN ('pending', 'running') THEN s.handoff_state END
  FROM sessions AS s
 WHERE s.handoff_state IS NOT NULL
   AND s.handoff_state NOT IN ('completed', 'failed')
   AND NOT utf8_broken(CAST(s.handoff_state AS BLOB))
   AND (s.handoff_state NOT IN ('pending', 'running')
        OR ((s.last_activity_at > :idle_since) IS NOT TRUE AND (s.started_at > :idle_since) IS NOT TRUE
            AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.timestamp > :idle_since)))
 ORDER BY s.id;

-- name: handoffs
-- needs: sessions.handoff_state
-- The same for files that do not say when a session was last active.
SELECT CAST(s.id AS BLOB), s.handoff_state IN ('pending', 'running'),
       CASE WHEN s.handoff_state IN ('pending', 'running') THEN s.handoff_state END
  FROM sessions AS s
 WHERE s.handoff_state IS NOT NULL
   AND s.handoff_state NOT IN ('completed', 'failed')
   AND NOT utf8_broken(CAST(s.handoff_state AS BLOB))
   AND (s.handoff_state NOT IN ('pending', 'running')
        OR ((s.started_at > :idle_since) IS NOT TRUE
            AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.timestamp > :idle_since)))
 ORDER BY s.id;

-- name: prompts
-- needs: system_prompts sessions.tool_names
-- One row per prompt or list of tool names that a session uses: row, the hash that names it, its bytes.
SELECT p.rowid, CAST(p.hash AS BLOB), CAST(p.prompt AS BLOB)
  FROM system_prompts AS p
 WHERE typeof(p.hash) = 'text' AND typeof(p.prompt) = 'text'
   AND (p.hash IN (SELECT s.system_prompt_hash FROM sessions AS s) OR p.hash IN (SELECT s.tool_names FROM sessions AS s))
 ORDER BY p.rowid;

-- name: prompts
-- needs: system_prompts
-- The same for files whose sessions name no lists of tools.
SELECT p.rowid, CAST(p.hash AS BLOB), CAST(p.prompt AS BLOB)
  FROM system_prompts AS p
 WHERE typeof(p.hash) = 'text' AND typeof(p.prompt) = 'text'
   AND p.hash IN (SELECT s.system_prompt_hash FROM sessions AS s)
 ORDER BY p.rowid;

-- name: started-twice
-- needs: session_admissions
-- One row per session in which more than one input is started: session, inputs.
SELECT CAST(a.target_session_id AS BLOB), count(*)
  FROM session_admissions AS a
 WHERE a.status = 'started'
 GROUP BY a.target_session_id
HAVING count(*) > 1
 ORDER BY a.target_session_id;

-- name: last-receipts
-- needs: worker_executions worker_receipts
-- One row per worker whose last step is not its newest receipt: worker, session, both numbers (NULL for one that is none).
SELECT CAST(w.execution_id AS BLOB), CAST(w.session_id AS BLOB),
       CASE WHEN typeof(w.last_sequence) = 'integer' THEN w.last_sequence END,
       CASE WHEN typeof(max(r.sequence)) = 'integer' THEN max(r.sequence) ELSE 0 END
  FROM worker_executions AS w
  LEFT JOIN worker_receipts AS r ON r.execution_id = w.execution_id
 GROUP BY w.execution_id
HAVING w.last_sequence IS NOT coalesce(max(r.sequence), 0)
 ORDER BY w.execution_id;
