-- The tool reads the tokenizer out of the text that made the index and asks the engine for it (hermes_dbtools/search_index.py):
-- opening the index itself is what fails.

-- name: indexes
-- One row per full-text index with the text that made it; the tokenizer is the first word after tokenize =.
SELECT name, sql
  FROM sqlite_schema
 WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'
 ORDER BY name;
