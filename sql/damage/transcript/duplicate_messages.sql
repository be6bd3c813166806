-- Messages of one session that are equal in role, content, calls and time. The first look reads pages of an index; content
-- is read where role, time and lengths are equal. Messages whose time is none are left to invalid-timestamps.

-- name: same-time
-- needs: index:idx_messages_session
-- One row per time that several messages of one session have: the session.
SELECT CAST(m.session_id AS BLOB)
  FROM messages AS m INDEXED BY idx_messages_session
 GROUP BY m.session_id, m.timestamp
HAVING count(*) > 1
   AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = m.session_id)
 ORDER BY m.session_id;

-- name: same-time
-- The same without the index.
SELECT CAST(m.session_id AS BLOB)
  FROM messages AS m NOT INDEXED
 GROUP BY m.session_id, m.timestamp
HAVING count(*) > 1
   AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = m.session_id)
 ORDER BY m.session_id;

-- name: twins
-- needs: messages.active messages.compacted
-- One row per message of one session that may have a copy in its own state: id, and whether a compression set it aside. What
-- a restore made active again is left out, and so is what a rewind took back.
SELECT twins.id, twins.archived
  FROM (SELECT m.id, m.active = 0 AND m.compacted = 1 AS archived,
               count(*) OVER (PARTITION BY m.active = 0 AND m.compacted = 1, m.timestamp, m.role, typeof(m.content), octet_length(m.content), octet_length(m.tool_calls),
                                         m.tool_call_id, m.tool_name) AS same
          FROM messages AS m
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.timestamp BETWEEN 1 AND 4200000000
           AND (m.active IS NOT 0) <> (m.compacted = 1)) AS twins
 WHERE twins.same > 1
 ORDER BY twins.id;

-- name: twins
-- needs: messages.active
-- The same for files older than compaction in place.
SELECT twins.id, twins.archived
  FROM (SELECT m.id, 0 AS archived,
               count(*) OVER (PARTITION BY m.timestamp, m.role, typeof(m.content), octet_length(m.content), octet_length(m.tool_calls),
                                         m.tool_call_id, m.tool_name) AS same
          FROM messages AS m
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.timestamp BETWEEN 1 AND 4200000000
           AND m.active IS NOT 0) AS twins
 WHERE twins.same > 1
 ORDER BY twins.id;

-- name: twins
-- The same for files older than the active flag: every row is active.
SELECT twins.id, twins.archived
  FROM (SELECT m.id, 0 AS archived,
               count(*) OVER (PARTITION BY m.timestamp, m.role, typeof(m.content), octet_length(m.content), octet_length(m.tool_calls),
                                         m.tool_call_id, m.tool_name) AS same
          FROM messages AS m
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.timestamp BETWEEN 1 AND 4200000000) AS twins
 WHERE twins.same > 1
 ORDER BY twins.id;

-- name: texts
-- One row per asked-for message, in order: id, what else must be equal, content and calls.
SELECT m.id,
       CAST(json_array(CASE WHEN typeof(m.timestamp) = 'real' THEN format('%!.17g', m.timestamp)
                            ELSE CAST(m.timestamp AS TEXT) END,
                       CAST(m.role AS TEXT), typeof(m.content), CAST(m.tool_call_id AS TEXT), CAST(m.tool_name AS TEXT),
                       typeof(m.tool_calls)) AS BLOB),
       CAST(m.content AS BLOB), CAST(m.tool_calls AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 ORDER BY m.id;

-- name: order
-- All messages of one session in order.
SELECT m.id
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
 ORDER BY m.id;

-- name: summaries
-- Those of the asked-for messages that are the summary of a compression.
SELECT m.id
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 INNER JOIN messages AS m ON m.id = wanted.value
 WHERE lower(substr(m.content, 1, 60)) GLOB '[[]*summary*'
    OR lower(substr(m.content, 1, 60)) GLOB '[[]*compaction*'
 ORDER BY m.id;

-- name: remove
-- needs: messages.active messages.compacted
-- Removes, between two ids, archived messages of one session that have an equal one with a smaller id.
DELETE FROM messages
 WHERE messages.session_id = CAST(:session AS TEXT)
   AND messages.timestamp BETWEEN 1 AND 4200000000
   AND messages.active = 0
   AND messages.compacted = 1
   AND messages.id BETWEEN :first AND :last
   AND EXISTS (
       SELECT 1
         FROM messages AS k
        WHERE k.session_id = messages.session_id
          AND k.timestamp IS messages.timestamp
          AND k.id < messages.id
          AND k.active = 0
          AND k.compacted = 1
          AND k.role IS messages.role
          AND k.content IS messages.content
          AND k.tool_calls IS messages.tool_calls
          AND k.tool_call_id IS messages.tool_call_id
          AND k.tool_name IS messages.tool_name);

-- name: remove-rows
-- needs: messages.active messages.compacted
-- One row per message that `remove` would take: its id and its bytes.
SELECT m.id,
       coalesce(octet_length(m.content), 0) + coalesce(octet_length(m.tool_calls), 0)
       + coalesce(octet_length(m.reasoning), 0) + coalesce(octet_length(m.reasoning_details), 0)
  FROM messages AS m
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.timestamp BETWEEN 1 AND 4200000000
   AND m.active = 0
   AND m.compacted = 1
   AND EXISTS (
       SELECT 1
         FROM messages AS k
        WHERE k.session_id = m.session_id
          AND k.timestamp IS m.timestamp
          AND k.id < m.id
          AND k.active = 0
          AND k.compacted = 1
          AND k.role IS m.role
          AND k.content IS m.content
          AND k.tool_calls IS m.tool_calls
          AND k.tool_call_id IS m.tool_call_id
          AND k.tool_name IS m.tool_name)
 ORDER BY m.id;

-- name: none-active
-- needs: messages.active
-- Whether one session has no active message.
SELECT NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = CAST(:session AS TEXT) AND m.active = 1);

-- name: recount
-- needs: messages.active
-- Sets both numbers of one session afterwards: of its active messages; of all where none is active, for a sweep would delete
-- a session that counts none. Where a list of calls cannot be read, the number of calls stays.
UPDATE sessions
   SET message_count = (SELECT coalesce(nullif(count(*) FILTER (WHERE m.active = 1), 0), count(*))
                          FROM messages AS m
                         WHERE m.session_id = sessions.id),
       tool_call_count = (SELECT CASE WHEN total(calls IS NULL) > 0 THEN sessions.tool_call_count
                                      WHEN total(active = 1) > 0 THEN coalesce(sum(CASE WHEN active = 1 THEN calls END), 0)
                                      ELSE coalesce(sum(calls), 0) END
                            FROM (SELECT m.active,
                                         CASE WHEN m.tool_calls IS NULL THEN 0
                                              WHEN NOT json_valid(m.tool_calls) THEN NULL
                                              WHEN json_type(m.tool_calls) = 'array'
                                              THEN json_array_length(m.tool_calls)
                                              ELSE 1 END AS calls
                                    FROM messages AS m
                                   WHERE m.session_id = sessions.id))
 WHERE id = CAST(:session AS TEXT);
