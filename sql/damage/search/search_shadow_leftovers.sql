-- The tool reads the schema and knows the names that FTS5 gives (hermes_dbtools/search_survey.py). For an operator:

-- name: tables
-- One row per table that looks like a part of a full-text index: the index itself has a row that begins with CREATE VIRTUAL.
SELECT name, sql
  FROM sqlite_schema
 WHERE type = 'table' AND (name GLOB 'messages_fts*' OR name GLOB 'fts_v*_trash_*')
 ORDER BY name;
