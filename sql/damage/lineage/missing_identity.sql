-- Identity that got lost on the way from one part of a conversation to the next. No value leaves the file: a step copies it from row to row.

-- name: conversations
-- needs: sessions.profile_name sessions.chat_id sessions.cwd
-- One row per session of a compressed conversation: id, parent (NULL for the first part), and the four values of its identity. A continuation
-- is a child of the same source that no marker of its own says to be something else.
SELECT CAST(c.id AS BLOB),
       CASE WHEN p.end_reason = 'compression' AND c.source <> 'tool' AND c.source = p.source
                 AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
                          THEN json_extract(c.model_config, '$._branched_from') IS NOT c.parent_session_id
                               AND json_extract(c.model_config, '$._delegate_from') IS NOT c.parent_session_id
                               AND json_extract(c.model_config, '$._reset_from') IS NOT c.parent_session_id
                          ELSE 1 END
            THEN CAST(p.id AS BLOB) END AS above,
       CAST(c.user_id AS BLOB), CAST(c.chat_id AS BLOB), CAST(c.cwd AS BLOB), CAST(c.profile_name AS BLOB)
  FROM sessions AS c
  LEFT JOIN sessions AS p ON p.id = c.parent_session_id
 WHERE typeof(c.id) = 'text'
   AND (c.end_reason = 'compression' OR p.end_reason = 'compression')
 ORDER BY c.id;

-- name: conversations
-- needs: sessions.chat_id sessions.cwd
-- The same for files whose sessions name no profile.
SELECT CAST(c.id AS BLOB),
       CASE WHEN p.end_reason = 'compression' AND c.source <> 'tool' AND c.source = p.source
                 AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
                          THEN json_extract(c.model_config, '$._branched_from') IS NOT c.parent_session_id
                               AND json_extract(c.model_config, '$._delegate_from') IS NOT c.parent_session_id
                               AND json_extract(c.model_config, '$._reset_from') IS NOT c.parent_session_id
                          ELSE 1 END
            THEN CAST(p.id AS BLOB) END AS above,
       CAST(c.user_id AS BLOB), CAST(c.chat_id AS BLOB), CAST(c.cwd AS BLOB), NULL
  FROM sessions AS c
  LEFT JOIN sessions AS p ON p.id = c.parent_session_id
 WHERE typeof(c.id) = 'text'
   AND (c.end_reason = 'compression' OR p.end_reason = 'compression')
 ORDER BY c.id;

-- name: conversations
-- needs: sessions.cwd
-- The same for files whose sessions name no chat.
SELECT CAST(c.id AS BLOB),
       CASE WHEN p.end_reason = 'compression' AND c.source <> 'tool' AND c.source = p.source
                 AND CASE WHEN typeof(c.model_config) = 'text' AND json_valid(c.model_config)
                          THEN json_extract(c.model_config, '$._branched_from') IS NOT c.parent_session_id
                               AND json_extract(c.model_config, '$._delegate_from') IS NOT c.parent_session_id
                               AND json_extract(c.model_config, '$._reset_from') IS NOT c.parent_session_id
                          ELSE 1 END
            THEN CAST(p.id AS BLOB) END AS above,
       CAST(c.user_id AS BLOB), NULL, CAST(c.cwd AS BLOB), NULL
  FROM sessions AS c
  LEFT JOIN sessions AS p ON p.id = c.parent_session_id
 WHERE typeof(c.id) = 'text'
   AND (c.end_reason = 'compression' OR p.end_reason = 'compression')
 ORDER BY c.id;

-- name: conversations
-- The same for files whose sessions name a user at most.
SELECT CAST(c.id AS BLOB),
       CASE WHEN p.end_reason = 'compression' AND c.source <> 'tool' AND c.source = p.source THEN CAST(p.id AS BLOB) END AS above,
       CAST(c.user_id AS BLOB), NULL, NULL, NULL
  FROM sessions AS c
  LEFT JOIN sessions AS p ON p.id = c.parent_session_id
 WHERE typeof(c.id) = 'text'
   AND (c.end_reason = 'compression' OR p.end_reason = 'compression')
 ORDER BY c.id;

-- name: chats
-- needs: sessions.session_key sessions.chat_id
-- One row per session of a chat that lacks what another session of the same chat has: id, whether it lacks the user, whether the chat.
WITH chat AS MATERIALIZED (
  SELECT s.session_key, max(s.user_id <> '') AS has_user, max(s.chat_id <> '') AS has_chat
    FROM sessions AS s
   WHERE s.session_key <> '' AND s.source NOT IN ('subagent', 'tool')
   GROUP BY s.session_key
)
SELECT CAST(s.id AS BLOB), s.user_id IS NULL AND c.has_user IS 1, s.chat_id IS NULL AND c.has_chat IS 1
  FROM sessions AS s
  JOIN chat AS c ON c.session_key = s.session_key
 WHERE typeof(s.id) = 'text'
   AND s.source NOT IN ('subagent', 'tool')
   AND ((s.user_id IS NULL AND c.has_user IS 1) OR (s.chat_id IS NULL AND c.has_chat IS 1))
 ORDER BY s.id;

-- name: fill-user_id
-- Copies the user to one continuation that names none.
UPDATE sessions
   SET user_id = (SELECT a.user_id FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT))
 WHERE id = CAST(:session_id AS TEXT)
   AND user_id IS NULL
   AND EXISTS (SELECT 1 FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT) AND a.user_id <> '');

-- name: fill-chat_id
-- needs: sessions.chat_id
-- Copies the chat to one continuation that names none.
UPDATE sessions
   SET chat_id = (SELECT a.chat_id FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT))
 WHERE id = CAST(:session_id AS TEXT)
   AND chat_id IS NULL
   AND EXISTS (SELECT 1 FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT) AND a.chat_id <> '');

-- name: fill-cwd
-- needs: sessions.cwd
-- Copies the working directory to one continuation that names none.
UPDATE sessions
   SET cwd = (SELECT a.cwd FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT))
 WHERE id = CAST(:session_id AS TEXT)
   AND cwd IS NULL
   AND EXISTS (SELECT 1 FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT) AND a.cwd <> '');

-- name: fill-profile_name
-- needs: sessions.profile_name
-- Copies the profile to one continuation that names none.
UPDATE sessions
   SET profile_name = (SELECT a.profile_name FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT))
 WHERE id = CAST(:session_id AS TEXT)
   AND profile_name IS NULL
   AND EXISTS (SELECT 1 FROM sessions AS a WHERE a.id = CAST(:holder AS TEXT) AND a.profile_name <> '');
