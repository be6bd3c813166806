-- Stored prompts, and stored lists of tool names, that no session uses. A list is named by another column than a prompt, so a
-- clean-up that looks at one column alone removes what is in use.

-- name: find
-- needs: sessions.tool_names index:idx_sessions_system_prompt_hash index:idx_sessions_tool_names
-- One row per unused prompt: its hash, how that is stored, its bytes.
SELECT CAST(p.hash AS BLOB), typeof(p.hash), coalesce(octet_length(p.prompt), 0)
  FROM system_prompts AS p
 WHERE p.hash IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS s INDEXED BY idx_sessions_system_prompt_hash WHERE s.system_prompt_hash = p.hash)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s INDEXED BY idx_sessions_tool_names WHERE s.tool_names = p.hash)
 ORDER BY p.hash;

-- name: find
-- needs: sessions.tool_names
-- The same from the tables alone: for a file without the indexes, and for a second look that no stale index can deceive.
SELECT CAST(p.hash AS BLOB), typeof(p.hash), coalesce(octet_length(p.prompt), 0)
  FROM system_prompts AS p NOT INDEXED
 WHERE p.hash IS NOT NULL
   AND p.hash NOT IN (SELECT s.system_prompt_hash FROM sessions AS s NOT INDEXED WHERE s.system_prompt_hash IS NOT NULL)
   AND p.hash NOT IN (SELECT s.tool_names FROM sessions AS s NOT INDEXED WHERE s.tool_names IS NOT NULL)
 ORDER BY p.hash;

-- name: find
-- The same for files whose sessions name no lists of tools.
SELECT CAST(p.hash AS BLOB), typeof(p.hash), coalesce(octet_length(p.prompt), 0)
  FROM system_prompts AS p NOT INDEXED
 WHERE p.hash IS NOT NULL
   AND p.hash NOT IN (SELECT s.system_prompt_hash FROM sessions AS s NOT INDEXED WHERE s.system_prompt_hash IS NOT NULL)
 ORDER BY p.hash;

-- name: any-session
-- Whether there is any session: asked only where a prompt is unused.
SELECT EXISTS (SELECT 1 FROM sessions);

-- name: drop
-- needs: sessions.tool_names
-- One prompt that no session uses.
DELETE FROM system_prompts
 WHERE hash IN (CAST(:hash AS TEXT), :hash)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.tool_names = system_prompts.hash);

-- name: drop
-- The same for files whose sessions name no lists of tools.
DELETE FROM system_prompts
 WHERE hash IN (CAST(:hash AS TEXT), :hash)
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = system_prompts.hash);
