-- Loops in the lineage. Which sessions form one is found in Python, in time linear in the sessions: a recursive statement
-- would walk every chain from every session. Read by hermes_dbtools/cycles.py.

-- name: links
-- One row per session that has a parent or a marker: id, parent, and the session that each of the three markers names.
WITH linked AS NOT MATERIALIZED (
  SELECT s.id, s.parent_session_id,
         CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config) THEN s.model_config ELSE '{}' END AS config
    FROM sessions AS s NOT INDEXED
   WHERE s.id IS NOT NULL
     AND (s.parent_session_id IS NOT NULL OR s.model_config IS NOT NULL)
), named AS NOT MATERIALIZED (
  SELECT l.id, l.parent_session_id,
         CASE WHEN json_type(l.config, '$._branched_from') = 'text' THEN json_extract(l.config, '$._branched_from') END AS branched,
         CASE WHEN json_type(l.config, '$._delegate_from') = 'text' THEN json_extract(l.config, '$._delegate_from') END AS delegated,
         CASE WHEN json_type(l.config, '$._reset_from') = 'text' THEN json_extract(l.config, '$._reset_from') END AS reset
    FROM linked AS l
)
SELECT CAST(n.id AS BLOB), CAST(n.parent_session_id AS BLOB),
       CAST(n.branched AS BLOB), CAST(n.delegated AS BLOB), CAST(n.reset AS BLOB)
  FROM named AS n
 WHERE n.parent_session_id IS NOT NULL
    OR n.branched IS NOT NULL
    OR n.delegated IS NOT NULL
    OR n.reset IS NOT NULL
 ORDER BY n.id;
