-- Results of tool calls, and a result in the place of one that was lost. Which calls wait for one the content pass says.

-- name: results
-- needs: messages.active
-- The ids of calls that active messages of one session answer.
SELECT CAST(m.tool_call_id AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND m.tool_call_id IS NOT NULL
   AND m.active IS NOT 0;

-- name: results
-- The same for files older than the active flag: every row is active.
SELECT CAST(m.tool_call_id AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND m.tool_call_id IS NOT NULL;

-- name: all-results
-- The ids of calls that messages of one session answer, active or not.
SELECT CAST(m.tool_call_id AS BLOB)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND m.tool_call_id IS NOT NULL;

-- name: answer
-- needs: messages.active
-- A result for each of the named calls of one message, at the end of its session and not before it in time. Ids count from :start,
-- so that the rows are known before they are there.
WITH
  called(session_id, timestamp, place, call_id, tool_name) AS (
    SELECT m.session_id, m.timestamp, min(c.key),
           coalesce(nullif(json_extract(m.tool_calls, c.fullkey || '.call_id'), ''),
                    json_extract(m.tool_calls, c.fullkey || '.id')),
           json_extract(m.tool_calls, c.fullkey || '.function.name')
      FROM messages AS m
     INNER JOIN json_each(CASE WHEN json_valid(m.tool_calls) THEN m.tool_calls ELSE '[]' END) AS c
     WHERE m.id = :message
       AND m.session_id = CAST(:session AS TEXT)
       AND m.active IS NOT 0
     GROUP BY 4),
  answers(id, session_id, call_id, tool_name, timestamp) AS (
    SELECT :start - 1 + row_number() OVER (ORDER BY called.place), called.session_id, called.call_id, called.tool_name,
           max(called.timestamp, (SELECT max(l.timestamp)
                                    FROM messages AS l
                                   WHERE l.session_id = called.session_id
                                     AND l.active IS NOT 0
                                     AND l.timestamp BETWEEN 1 AND 4200000000))
      FROM called
     WHERE called.call_id IN (SELECT wanted.value FROM json_each(CAST(:calls AS TEXT)) AS wanted))
INSERT INTO messages (id, session_id, role, content, tool_call_id, tool_name, timestamp, active)
SELECT a.id, a.session_id, 'tool', :note, a.call_id, a.tool_name, a.timestamp, 1
  FROM answers AS a
 WHERE a.id BETWEEN :first AND :last
 ORDER BY a.id;

-- name: answer
-- The same for files older than the active flag: every row is active.
WITH
  called(session_id, timestamp, place, call_id, tool_name) AS (
    SELECT m.session_id, m.timestamp, min(c.key),
           coalesce(nullif(json_extract(m.tool_calls, c.fullkey || '.call_id'), ''),
                    json_extract(m.tool_calls, c.fullkey || '.id')),
           json_extract(m.tool_calls, c.fullkey || '.function.name')
      FROM messages AS m
     INNER JOIN json_each(CASE WHEN json_valid(m.tool_calls) THEN m.tool_calls ELSE '[]' END) AS c
     WHERE m.id = :message
       AND m.session_id = CAST(:session AS TEXT)
     GROUP BY 4),
  answers(id, session_id, call_id, tool_name, timestamp) AS (
    SELECT :start - 1 + row_number() OVER (ORDER BY called.place), called.session_id, called.call_id, called.tool_name,
           max(called.timestamp, (SELECT max(l.timestamp)
                                    FROM messages AS l
                                   WHERE l.session_id = called.session_id
                                     AND l.timestamp BETWEEN 1 AND 4200000000))
      FROM called
     WHERE called.call_id IN (SELECT wanted.value FROM json_each(CAST(:calls AS TEXT)) AS wanted))
INSERT INTO messages (id, session_id, role, content, tool_call_id, tool_name, timestamp)
SELECT a.id, a.session_id, 'tool', :note, a.call_id, a.tool_name, a.timestamp
  FROM answers AS a
 WHERE a.id BETWEEN :first AND :last
 ORDER BY a.id;

-- name: answer-rows
-- needs: messages.active
-- One row per message that `answer` would add: its id and its bytes.
WITH
  called(session_id, timestamp, place, call_id, tool_name) AS (
    SELECT m.session_id, m.timestamp, min(c.key),
           coalesce(nullif(json_extract(m.tool_calls, c.fullkey || '.call_id'), ''),
                    json_extract(m.tool_calls, c.fullkey || '.id')),
           json_extract(m.tool_calls, c.fullkey || '.function.name')
      FROM messages AS m
     INNER JOIN json_each(CASE WHEN json_valid(m.tool_calls) THEN m.tool_calls ELSE '[]' END) AS c
     WHERE m.id = :message
       AND m.session_id = CAST(:session AS TEXT)
       AND m.active IS NOT 0
     GROUP BY 4),
  answers(id, session_id, call_id, tool_name, timestamp) AS (
    SELECT :start - 1 + row_number() OVER (ORDER BY called.place), called.session_id, called.call_id, called.tool_name,
           max(called.timestamp, (SELECT max(l.timestamp)
                                    FROM messages AS l
                                   WHERE l.session_id = called.session_id
                                     AND l.active IS NOT 0
                                     AND l.timestamp BETWEEN 1 AND 4200000000))
      FROM called
     WHERE called.call_id IN (SELECT wanted.value FROM json_each(CAST(:calls AS TEXT)) AS wanted))
SELECT a.id, 200
  FROM answers AS a
 ORDER BY a.id;

-- name: answer-rows
-- The same for files older than the active flag: every row is active.
WITH
  called(session_id, timestamp, place, call_id, tool_name) AS (
    SELECT m.session_id, m.timestamp, min(c.key),
           coalesce(nullif(json_extract(m.tool_calls, c.fullkey || '.call_id'), ''),
                    json_extract(m.tool_calls, c.fullkey || '.id')),
           json_extract(m.tool_calls, c.fullkey || '.function.name')
      FROM messages AS m
     INNER JOIN json_each(CASE WHEN json_valid(m.tool_calls) THEN m.tool_calls ELSE '[]' END) AS c
     WHERE m.id = :message
       AND m.session_id = CAST(:session AS TEXT)
     GROUP BY 4),
  answers(id, session_id, call_id, tool_name, timestamp) AS (
    SELECT :start - 1 + row_number() OVER (ORDER BY called.place), called.session_id, called.call_id, called.tool_name,
           max(called.timestamp, (SELECT max(l.timestamp)
                                    FROM messages AS l
                                   WHERE l.session_id = called.session_id
                                     AND l.timestamp BETWEEN 1 AND 4200000000))
      FROM called
     WHERE called.call_id IN (SELECT wanted.value FROM json_each(CAST(:calls AS TEXT)) AS wanted))
SELECT a.id, 200
  FROM answers AS a
 ORDER BY a.id;

-- name: next-id
-- The id that the next message of the file gets.
SELECT 1 + max(coalesce((SELECT max(m.id) FROM messages AS m), 0),
               coalesce((SELECT max(q.seq) FROM sqlite_sequence AS q WHERE q.name = 'messages' AND typeof(q.seq) = 'integer'), 0));

-- name: recount
-- needs: messages.active
-- Sets the number of messages of one session after the results: its active messages.
UPDATE sessions
   SET message_count = (SELECT count(*)
                          FROM messages AS m
                         WHERE m.session_id = sessions.id
                           AND m.active = 1)
 WHERE id = CAST(:session AS TEXT);

-- name: recount
-- The same for files older than the active flag: every row is active.
UPDATE sessions
   SET message_count = (SELECT count(*) FROM messages AS m WHERE m.session_id = sessions.id)
 WHERE id = CAST(:session AS TEXT);
