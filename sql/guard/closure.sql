-- How far a live session reaches: read by hermes_dbtools/guard.py. Only a temporary table is written.

-- name: make
-- The ids that are live by themselves, as text and as the bytes they may be stored as.
CREATE TEMP TABLE IF NOT EXISTS guard_seeds (session_id BLOB);

-- name: clear
-- Nothing is left of an earlier look.
DELETE FROM temp.guard_seeds;

-- name: fill
-- One live session; a damaged row may hold its id as bytes.
INSERT INTO temp.guard_seeds (session_id) VALUES (CAST(:id AS TEXT)), (CAST(:id AS BLOB));

-- name: reach
-- needs: index:idx_sessions_parent
-- One row per session that a seed reaches: id, parent, whether it continues that parent after a compression, and the
-- session that delegated it. A parent without a row may have been compressed, so its unmarked children are taken for
-- continuations. A chain is followed both ways, a delegate only upward.
WITH RECURSIVE configured AS NOT MATERIALIZED (
    SELECT session.id,
           session.parent_session_id,
           session.source,
           CASE WHEN json_valid(session.model_config) THEN session.model_config ELSE '{}' END AS model_config
      FROM sessions AS session
), links AS NOT MATERIALIZED (
    SELECT child.id AS session_id,
           child.parent_session_id,
           child.source IS NOT 'tool'
           AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')
           AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')
           AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')
           AND NOT EXISTS (SELECT 1
                             FROM sessions AS parent
                            WHERE parent.id = child.parent_session_id
                              AND parent.end_reason IS NOT 'compression') AS continues,
           json_extract(child.model_config, '$._delegate_from') AS delegate_from
      FROM configured AS child
), guarded (session_id) AS (
    SELECT seed.session_id FROM temp.guard_seeds AS seed
     UNION
    SELECT child.session_id
      FROM guarded
      JOIN links AS child ON child.parent_session_id = guarded.session_id
     WHERE child.continues AND child.session_id IS NOT NULL
     UNION
    SELECT child.parent_session_id
      FROM guarded
      JOIN links AS child ON child.session_id = guarded.session_id
     WHERE (child.continues OR child.delegate_from IS NOT NULL) AND child.parent_session_id IS NOT NULL
     UNION
    SELECT child.delegate_from
      FROM guarded
      JOIN links AS child ON child.session_id = guarded.session_id
     WHERE child.delegate_from <> '__orphaned__'
)
SELECT CAST(guarded.session_id AS BLOB) AS session_id,
       CAST(child.parent_session_id AS BLOB) AS parent,
       child.continues,
       CAST(NULLIF(child.delegate_from, '__orphaned__') AS BLOB) AS delegate_from,
       child.delegate_from IS NOT NULL AS delegated
  FROM guarded
  LEFT JOIN links AS child ON child.session_id = guarded.session_id
 ORDER BY 1;

-- name: reach
-- The same where the index of children is missing or no index may be relied on: every session is read once.
WITH RECURSIVE ended AS MATERIALIZED (
    SELECT session.id, session.end_reason FROM sessions AS session NOT INDEXED
), configured AS NOT MATERIALIZED (
    SELECT session.id,
           session.parent_session_id,
           session.source,
           CASE WHEN json_valid(session.model_config) THEN session.model_config ELSE '{}' END AS model_config
      FROM sessions AS session NOT INDEXED
), links AS MATERIALIZED (
    SELECT child.id AS session_id,
           child.parent_session_id,
           child.source IS NOT 'tool'
           AND child.parent_session_id IS NOT json_extract(child.model_config, '$._branched_from')
           AND child.parent_session_id IS NOT json_extract(child.model_config, '$._delegate_from')
           AND child.parent_session_id IS NOT json_extract(child.model_config, '$._reset_from')
           AND (parent.id IS NULL OR parent.end_reason IS 'compression') AS continues,
           json_extract(child.model_config, '$._delegate_from') AS delegate_from
      FROM configured AS child
      LEFT JOIN ended AS parent ON parent.id = child.parent_session_id
), guarded (session_id) AS (
    SELECT seed.session_id FROM temp.guard_seeds AS seed
     UNION
    SELECT child.session_id
      FROM guarded
      JOIN links AS child ON child.parent_session_id = guarded.session_id
     WHERE child.continues AND child.session_id IS NOT NULL
     UNION
    SELECT child.parent_session_id
      FROM guarded
      JOIN links AS child ON child.session_id = guarded.session_id
     WHERE (child.continues OR child.delegate_from IS NOT NULL) AND child.parent_session_id IS NOT NULL
     UNION
    SELECT child.delegate_from
      FROM guarded
      JOIN links AS child ON child.session_id = guarded.session_id
     WHERE child.delegate_from <> '__orphaned__'
)
SELECT CAST(guarded.session_id AS BLOB) AS session_id,
       CAST(child.parent_session_id AS BLOB) AS parent,
       child.continues,
       CAST(NULLIF(child.delegate_from, '__orphaned__') AS BLOB) AS delegate_from,
       child.delegate_from IS NOT NULL AS delegated
  FROM guarded
  LEFT JOIN links AS child ON child.session_id = guarded.session_id
 ORDER BY 1;
