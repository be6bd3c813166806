-- Times of messages against their order. The first look reads pages of an index and no message.

-- name: by-time
-- needs: messages.active index:idx_messages_session_active
-- One row per active message with a time, by session and time: session and id.
SELECT CAST(m.session_id AS BLOB), m.id
  FROM messages AS m INDEXED BY idx_messages_session_active
 WHERE m.active = 1
   AND m.timestamp BETWEEN 1 AND 4200000000
 ORDER BY m.session_id, m.active, m.timestamp, m.id;

-- name: by-time
-- needs: messages.active
-- The same without the index over session and flag.
SELECT CAST(m.session_id AS BLOB), m.id
  FROM messages AS m NOT INDEXED
 WHERE m.active = 1
   AND m.timestamp BETWEEN 1 AND 4200000000
 ORDER BY m.session_id, m.timestamp, m.id;

-- name: by-time
-- needs: index:idx_messages_session
-- The same for files older than the active flag: every row is active.
SELECT CAST(m.session_id AS BLOB), m.id
  FROM messages AS m INDEXED BY idx_messages_session
 WHERE m.timestamp BETWEEN 1 AND 4200000000
 ORDER BY m.session_id, m.timestamp, m.id;

-- name: by-time
-- The same for files older than the active flag, without the index over sessions.
SELECT CAST(m.session_id AS BLOB), m.id
  FROM messages AS m NOT INDEXED
 WHERE m.timestamp BETWEEN 1 AND 4200000000
 ORDER BY m.session_id, m.timestamp, m.id;

-- name: compacted
-- needs: messages.compacted
-- Whether a compression has touched one session: messages that it set aside, or a parent that it closed. No row where the
-- session itself has none.
SELECT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = s.parent_session_id AND p.end_reason = 'compression')
       OR EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.compacted = 1)
  FROM sessions AS s
 WHERE s.id = CAST(:session AS TEXT);

-- name: compacted
-- The same for files older than compaction in place.
SELECT EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = s.parent_session_id AND p.end_reason = 'compression')
  FROM sessions AS s
 WHERE s.id = CAST(:session AS TEXT);

-- name: back
-- needs: messages.active
-- One row per active message of one session that is earlier than the one before it: its id, by how many seconds, and whether the
-- one before it is the summary of a compression.
SELECT later.id, later.earlier - later.timestamp,
       (SELECT lower(substr(b.content, 1, 60)) GLOB '[[]*summary*' OR lower(substr(b.content, 1, 60)) GLOB '[[]*compaction*'
          FROM messages AS b
         WHERE b.id = later.before) IS TRUE
  FROM (SELECT m.id, m.timestamp, lag(m.id) OVER (ORDER BY m.id) AS before, lag(m.timestamp) OVER (ORDER BY m.id) AS earlier
          FROM messages AS m
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.active IS NOT 0
           AND m.timestamp BETWEEN 1 AND 4200000000) AS later
 WHERE later.earlier - later.timestamp > :step
 ORDER BY later.id;

-- name: back
-- The same for files older than the active flag: every row is active.
SELECT later.id, later.earlier - later.timestamp,
       (SELECT lower(substr(b.content, 1, 60)) GLOB '[[]*summary*' OR lower(substr(b.content, 1, 60)) GLOB '[[]*compaction*'
          FROM messages AS b
         WHERE b.id = later.before) IS TRUE
  FROM (SELECT m.id, m.timestamp, lag(m.id) OVER (ORDER BY m.id) AS before, lag(m.timestamp) OVER (ORDER BY m.id) AS earlier
          FROM messages AS m
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.timestamp BETWEEN 1 AND 4200000000) AS later
 WHERE later.earlier - later.timestamp > :step
 ORDER BY later.id;
