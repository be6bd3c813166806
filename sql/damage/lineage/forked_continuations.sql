-- Sessions that compression closed and that more than one session continues. What continues a session is said in the words of
-- sql/guard/closure.sql: hangs under it, no marker names it, and is no tool run.

-- name: find
-- One row per continuation of a session that has several: the session, its end, the continuation, its start, whether it is
-- open, whether compression closed it too, whether it started before the session ended.
WITH configured AS NOT MATERIALIZED (
  SELECT session.id, session.parent_session_id, session.source, session.started_at, session.ended_at, session.end_reason,
         CASE WHEN json_valid(session.model_config) THEN session.model_config ELSE '{}' END AS model_config
    FROM sessions AS session NOT INDEXED
), continuations AS MATERIALIZED (
  SELECT child.id, child.parent_session_id, child.started_at, child.ended_at, child.end_reason
    FROM configured AS child
   WHERE child.parent_session_id IN (SELECT parent.id FROM sessions AS parent NOT INDEXED
                                      WHERE parent.end_reason = 'compression' AND typeof(parent.id) = 'text')
     AND typeof(child.id) = 'text' AND child.id <> child.parent_session_id
     AND child.source IS NOT 'tool'
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')
     AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')
)
SELECT CAST(parent.id AS BLOB), CASE WHEN typeof(parent.ended_at) IN ('integer', 'real') THEN parent.ended_at END,
       CAST(child.id AS BLOB), CASE WHEN typeof(child.started_at) IN ('integer', 'real') THEN child.started_at END,
       child.ended_at IS NULL, child.end_reason IS 'compression', coalesce(child.started_at < parent.ended_at, 1)
  FROM continuations AS child
 INNER JOIN sessions AS parent ON parent.id = child.parent_session_id
 WHERE child.parent_session_id IN (SELECT c.parent_session_id FROM continuations AS c
                                    GROUP BY c.parent_session_id HAVING count(*) > 1)
 ORDER BY parent.id, child.id;

-- name: shares
-- Whether one of the first twenty texts of a session is a text of its parent too: a compression keeps some, a task handed to
-- a sub-agent is none of them.
SELECT EXISTS (SELECT 1
                 FROM (SELECT m.role, m.content
                         FROM messages AS m
                        WHERE m.session_id = CAST(:child AS TEXT) AND m.role IN ('user', 'assistant')
                          AND octet_length(m.content) > 0
                        ORDER BY +m.id
                        LIMIT 20) AS own
                WHERE EXISTS (SELECT 1 FROM messages AS p
                               WHERE p.session_id = CAST(:parent AS TEXT)
                                 AND p.role = own.role AND p.content = own.content));
