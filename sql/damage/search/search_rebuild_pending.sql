-- The tool runs the statements of sql/search/survey.sql and reads the triggers in the schema. For an operator:

-- name: marks
-- One row per mark that the store keeps about its indexes.
SELECT key, value
  FROM state_meta
 WHERE key GLOB 'fts_*'
 ORDER BY key;

-- name: triggers
-- One row per trigger that feeds an index: three for each.
SELECT name
  FROM sqlite_schema
 WHERE type = 'trigger' AND tbl_name = 'messages' AND sql LIKE '%messages_fts%'
 ORDER BY name;
