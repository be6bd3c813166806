-- Markers that contradict each other, the parent, or the chat of their session.

-- name: find
-- needs: sessions.session_key
-- One row per session that has two markers, one that differs from its parent, or a delegate marker in a chat: id, parent; for
-- the branch, delegate and reset marker the id it names; for each whether that id has a row and whether the parent has the
-- same marker; whether compression closed the parent; source of a sub-agent or not; whether it belongs to a chat.
WITH marks AS MATERIALIZED (
  SELECT s.id, s.parent_session_id AS parent, s.source, s.end_reason, s.session_key <> '' AS keyed,
         CASE WHEN json_type(s.model_config, '$._branched_from') = 'text'
              THEN nullif(json_extract(s.model_config, '$._branched_from'), '') END AS branch,
         CASE WHEN json_type(s.model_config, '$._delegate_from') = 'text'
              THEN nullif(json_extract(s.model_config, '$._delegate_from'), '') END AS delegate,
         CASE WHEN json_type(s.model_config, '$._reset_from') = 'text'
              THEN nullif(json_extract(s.model_config, '$._reset_from'), '') END AS reset
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND CASE WHEN typeof(s.model_config) = 'text' THEN json_valid(s.model_config) END
)
SELECT CAST(k.id AS BLOB), CAST(k.parent AS BLOB),
       CAST(k.branch AS BLOB), CAST(k.delegate AS BLOB), CAST(k.reset AS BLOB),
       EXISTS (SELECT 1 FROM sessions AS t WHERE t.id = k.branch),
       EXISTS (SELECT 1 FROM sessions AS t WHERE t.id = k.delegate),
       EXISTS (SELECT 1 FROM sessions AS t WHERE t.id = k.reset),
       coalesce(p.branch = k.branch, 0), coalesce(p.delegate = k.delegate, 0), coalesce(p.reset = k.reset, 0),
       coalesce((SELECT a.end_reason = 'compression' FROM sessions AS a WHERE a.id = k.parent), 0),
       k.source = 'subagent', coalesce(k.keyed, 0)
  FROM marks AS k
  LEFT JOIN marks AS p ON p.id = k.parent
 WHERE (k.branch IS NOT NULL) + (k.delegate IS NOT NULL) + (k.reset IS NOT NULL) > 0
   AND ((k.branch IS NOT NULL) + (k.delegate IS NOT NULL) + (k.reset IS NOT NULL) > 1
        OR k.parent <> coalesce(k.branch, k.delegate, k.reset)
        OR (k.delegate IS NOT NULL AND k.keyed AND k.source <> 'subagent'))
   AND (k.parent IS NULL OR EXISTS (SELECT 1 FROM sessions AS a WHERE a.id = k.parent))
 ORDER BY k.id;

-- name: find
-- The same for files whose sessions do not know their chat.
WITH marks AS MATERIALIZED (
  SELECT s.id, s.parent_session_id AS parent, s.source, s.end_reason,
         CASE WHEN json_type(s.model_config, '$._branched_from') = 'text'
              THEN nullif(json_extract(s.model_config, '$._branched_from'), '') END AS branch,
         CASE WHEN json_type(s.model_config, '$._delegate_from') = 'text'
              THEN nullif(json_extract(s.model_config, '$._delegate_from'), '') END AS delegate,
         CASE WHEN json_type(s.model_config, '$._reset_from') = 'text'
              THEN nullif(json_extract(s.model_config, '$._reset_from'), '') END AS reset
    FROM sessions AS s
   WHERE typeof(s.id) = 'text'
     AND CASE WHEN typeof(s.model_config) = 'text' THEN json_valid(s.model_config) END
)
SELECT CAST(k.id AS BLOB), CAST(k.parent AS BLOB),
       CAST(k.branch AS BLOB), CAST(k.delegate AS BLOB), CAST(k.reset AS BLOB),
       EXISTS (SELECT 1 FROM sessions AS t WHERE t.id = k.branch),
       EXISTS (SELECT 1 FROM sessions AS t WHERE t.id = k.delegate),
       EXISTS (SELECT 1 FROM sessions AS t WHERE t.id = k.reset),
       coalesce(p.branch = k.branch, 0), coalesce(p.delegate = k.delegate, 0), coalesce(p.reset = k.reset, 0),
       coalesce((SELECT a.end_reason = 'compression' FROM sessions AS a WHERE a.id = k.parent), 0),
       k.source = 'subagent', 0
  FROM marks AS k
  LEFT JOIN marks AS p ON p.id = k.parent
 WHERE (k.branch IS NOT NULL) + (k.delegate IS NOT NULL) + (k.reset IS NOT NULL) > 0
   AND ((k.branch IS NOT NULL) + (k.delegate IS NOT NULL) + (k.reset IS NOT NULL) > 1
        OR k.parent <> coalesce(k.branch, k.delegate, k.reset))
   AND (k.parent IS NULL OR EXISTS (SELECT 1 FROM sessions AS a WHERE a.id = k.parent))
 ORDER BY k.id;

-- name: strip
-- Takes one marker out of one session; the marker still names the session it was found to name.
UPDATE sessions
   SET model_config = json_remove(model_config, '$.' || :marker)
 WHERE id = CAST(:session_id AS TEXT)
   AND CASE WHEN typeof(model_config) = 'text' AND json_valid(model_config)
            THEN json_extract(model_config, '$.' || :marker) END = CAST(:named AS TEXT);
