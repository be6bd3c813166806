-- Sessions that name a stored prompt, or a stored list of tool names, which is not there.

-- name: prompts
-- needs: sessions.system_prompt_hash
-- One row per missing prompt and session that names it: the hash, how it is stored, the session id, how that is
-- stored, whether the session's parent row is missing too.
SELECT CAST(c.system_prompt_hash AS BLOB), typeof(c.system_prompt_hash), CAST(c.id AS BLOB), typeof(c.id),
       c.parent_session_id IS NOT NULL
       AND c.parent_session_id NOT IN (SELECT s.id FROM sessions AS s NOT INDEXED WHERE s.id IS NOT NULL)
  FROM sessions AS c
 WHERE c.system_prompt_hash IS NOT NULL
   AND c.system_prompt_hash NOT IN (SELECT p.hash FROM system_prompts AS p NOT INDEXED WHERE p.hash IS NOT NULL)
 ORDER BY c.system_prompt_hash, c.id;

-- name: tools
-- needs: sessions.tool_names
-- The same for lists of tool names. No key is declared there, so only what looks like a hash is taken for one.
SELECT CAST(c.tool_names AS BLOB), typeof(c.tool_names), CAST(c.id AS BLOB), typeof(c.id), 0
  FROM sessions AS c
 WHERE c.tool_names IS NOT NULL
   AND c.tool_names NOT IN (SELECT p.hash FROM system_prompts AS p NOT INDEXED WHERE p.hash IS NOT NULL)
   AND typeof(c.tool_names) = 'text'
   AND length(c.tool_names) = 64
   AND c.tool_names NOT GLOB '*[^0-9a-f]*'
 ORDER BY c.tool_names, c.id;

-- name: totals
-- How many sessions there are, and whether any prompt is stored: asked only where a prompt is missing.
SELECT (SELECT count(*) FROM sessions), EXISTS (SELECT 1 FROM system_prompts);

-- name: null-prompts
-- The sessions that name one missing prompt name none, but for those that SQLite would not let change.
UPDATE sessions
   SET system_prompt_hash = NULL
 WHERE system_prompt_hash IN (CAST(:hash AS TEXT), :hash)
   AND hex(CAST(id AS BLOB)) NOT IN (SELECT k.value FROM json_each(:kept) AS k)
   AND NOT EXISTS (SELECT 1 FROM system_prompts AS p WHERE p.hash = sessions.system_prompt_hash);

-- name: null-tools
-- The sessions that name one missing list of tool names name none.
UPDATE sessions
   SET tool_names = NULL
 WHERE tool_names IN (CAST(:hash AS TEXT), :hash)
   AND hex(CAST(id AS BLOB)) NOT IN (SELECT k.value FROM json_each(:kept) AS k)
   AND NOT EXISTS (SELECT 1 FROM system_prompts AS p WHERE p.hash = sessions.tool_names);
