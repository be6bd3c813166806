-- What tells a hidden chat from the run of a sub-agent. Which sessions are hidden, and by which rule, is in sql/visibility.sql.

-- name: facts
-- One row about one hidden session: its source, whether it has a title.
SELECT CAST(s.source AS BLOB), s.title IS NOT NULL
  FROM sessions AS s
 WHERE s.id = CAST(:session_id AS TEXT);

-- name: said
-- needs: index:idx_messages_session
-- The first messages of users in one hidden session, three at most.
SELECT CAST(m.session_id AS BLOB), count(*)
  FROM (SELECT n.session_id FROM messages AS n INDEXED BY idx_messages_session
         WHERE n.session_id = CAST(:session_id AS TEXT) AND n.role = 'user'
         LIMIT 3) AS m
 GROUP BY m.session_id;

-- name: said-by-all
-- One row per session that has messages of users: the session, how many. For a file without the index.
SELECT CAST(m.session_id AS BLOB), count(*)
  FROM messages AS m NOT INDEXED
 WHERE m.role = 'user'
 GROUP BY m.session_id;

-- name: parent
-- The parent that one hidden session names, and whether that has no end.
SELECT CAST(s.parent_session_id AS BLOB), p.id IS NOT NULL AND p.ended_at IS NULL
  FROM sessions AS s
  LEFT JOIN sessions AS p ON p.id = s.parent_session_id
 WHERE s.id = CAST(:session_id AS TEXT);
