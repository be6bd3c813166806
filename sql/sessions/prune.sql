-- Which sessions a prune may take: read by hermes_dbtools/sessions/prune.py. A session is old when nothing of it is newer than a moment.

-- name: times
-- needs: sessions.last_activity_at
-- One row per session: id, whether it has ended, whether everything of it is older than :before. A time that is no number is not old.
SELECT CAST(s.id AS BLOB), s.ended_at IS NOT NULL,
       typeof(s.started_at) IN ('integer', 'real') AND s.started_at < :before
       AND typeof(s.ended_at) IN ('integer', 'real', 'null') AND coalesce(s.ended_at, 0) < :before
       AND typeof(s.last_activity_at) IN ('integer', 'real', 'null') AND coalesce(s.last_activity_at, 0) < :before
       AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.timestamp >= :before)
  FROM sessions AS s
 ORDER BY s.id;

-- name: times
-- The same where sessions keep no time of activity.
SELECT CAST(s.id AS BLOB), s.ended_at IS NOT NULL,
       typeof(s.started_at) IN ('integer', 'real') AND s.started_at < :before
       AND typeof(s.ended_at) IN ('integer', 'real', 'null') AND coalesce(s.ended_at, 0) < :before
       AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.timestamp >= :before)
  FROM sessions AS s
 ORDER BY s.id;

-- name: pinned
-- needs: sessions.pinned
-- The sessions that are pinned.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.pinned IS NOT NULL AND s.pinned <> 0 ORDER BY s.id;

-- name: by-source
-- The sessions of one source.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.source = :value ORDER BY s.id;

-- name: by-end-reason
-- The sessions that ended for one reason.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.end_reason = :value ORDER BY s.id;

-- name: by-title
-- needs: sessions.title
-- The sessions whose title holds a text, in any case of letters.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE instr(lower(s.title), lower(:value)) ORDER BY s.id;

-- name: by-model
-- needs: sessions.model
-- The sessions whose model's name holds a text, in any case of letters.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE instr(lower(s.model), lower(:value)) ORDER BY s.id;

-- name: by-folder
-- needs: sessions.cwd
-- The sessions that worked in a folder or below it.
SELECT CAST(s.id AS BLOB) FROM sessions AS s
 WHERE s.cwd = :value OR substr(s.cwd, 1, length(:value) + 1) = :value || '/'
 ORDER BY s.id;

-- name: by-user
-- needs: sessions.user_id
-- The sessions of one user of a platform.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.user_id = :value ORDER BY s.id;

-- name: by-archived
-- needs: sessions.archived
-- The sessions that are archived, or those that are not.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE (coalesce(s.archived, 0) <> 0) = :value ORDER BY s.id;

-- name: by-min-messages
-- The sessions with so many messages or more, as their own counter says.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.message_count >= :value ORDER BY s.id;

-- name: by-max-messages
-- The sessions with so many messages or fewer, as their own counter says.
SELECT CAST(s.id AS BLOB) FROM sessions AS s WHERE s.message_count <= :value ORDER BY s.id;
