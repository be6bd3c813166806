-- Times that are none: outside 1 to 4200000000 epoch seconds (1970 to 2103), or no number. A comparison with text or NULL is not true.

-- name: unsound
-- One row per unsound time of one column: row, session, type, value where it is a number. NULL counts where a time is required,
-- 0 unless it may stand for "never".
SELECT t.rowid, CAST(t.{owner} AS BLOB), typeof(t.{column}),
       CASE WHEN typeof(t.{column}) IN ('integer', 'real') THEN t.{column} END
  FROM {table} AS t
 WHERE (t.{column} BETWEEN 1 AND 4200000000) IS NOT TRUE
   AND (t.{column} IS NOT NULL OR :required)
   AND (t.{column} IS NOT 0 OR NOT :zero)
 ORDER BY t.rowid;

-- name: facts
-- What one session tells of its times: start, end, first and last message, the start of the sessions made before and after it,
-- within a thousand rows.
-- Times that are milliseconds or microseconds count as what they mean.
WITH seconds AS (
  SELECT m.session_id,
         CASE WHEN m.timestamp BETWEEN 1 AND 4200000000 THEN m.timestamp
              WHEN m.timestamp BETWEEN 1e11 AND 4.2e12 THEN m.timestamp / 1e3
              WHEN m.timestamp BETWEEN 1e14 AND 4.2e15 THEN m.timestamp / 1e6 END AS moment
    FROM messages AS m
   WHERE m.session_id = CAST(:session_id AS TEXT)
), starts AS (
  SELECT o.rowid AS place,
         CASE WHEN o.started_at BETWEEN 1 AND 4200000000 THEN o.started_at
              WHEN o.started_at BETWEEN 1e11 AND 4.2e12 THEN o.started_at / 1e3
              WHEN o.started_at BETWEEN 1e14 AND 4.2e15 THEN o.started_at / 1e6 END AS moment
    FROM sessions AS o
)
SELECT CASE WHEN typeof(s.started_at) IN ('integer', 'real') THEN s.started_at END,
       CASE WHEN typeof(s.ended_at) IN ('integer', 'real') THEN s.ended_at END,
       (SELECT min(m.moment) FROM seconds AS m),
       (SELECT max(m.moment) FROM seconds AS m),
       (SELECT o.moment FROM starts AS o WHERE o.place BETWEEN s.rowid - 1000 AND s.rowid - 1 AND o.moment IS NOT NULL ORDER BY o.place DESC LIMIT 1),
       (SELECT o.moment FROM starts AS o WHERE o.place BETWEEN s.rowid + 1 AND s.rowid + 1000 AND o.moment IS NOT NULL ORDER BY o.place LIMIT 1)
  FROM sessions AS s
 WHERE s.id = CAST(:session_id AS TEXT);

-- name: sessions-of
-- The sessions of the named messages.
SELECT DISTINCT CAST(m.session_id AS BLOB)
  FROM json_each(CAST(:ids AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 ORDER BY m.session_id;

-- name: moments
-- One row per message of one session, whether its id is kept as text or as bytes, in the order of insertion: id, type of its time, its time where that is a number.
SELECT m.id, typeof(m.timestamp), CASE WHEN typeof(m.timestamp) IN ('integer', 'real') THEN m.timestamp END
  FROM messages AS m
 WHERE m.session_id IN (CAST(:session_id AS TEXT), CAST(:session_id AS BLOB))
 ORDER BY m.id;

-- name: around
-- The time of the last sound message of the thousand ids before one, and of the first of the thousand after another.
SELECT (SELECT m.timestamp FROM messages AS m
         WHERE m.id BETWEEN :first - 1000 AND :first - 1 AND m.timestamp BETWEEN 1 AND 4200000000 ORDER BY m.id DESC LIMIT 1),
       (SELECT m.timestamp FROM messages AS m
         WHERE m.id BETWEEN :last + 1 AND :last + 1000 AND m.timestamp BETWEEN 1 AND 4200000000 ORDER BY m.id LIMIT 1);

-- name: divide
-- Makes seconds of one time that is in milliseconds or microseconds.
UPDATE {table}
   SET {column} = {column} / :by
 WHERE rowid = :row
   AND typeof({column}) IN ('integer', 'real')
   AND {column} > 4200000000;

-- name: estimate
-- Puts an estimated time, or NULL, in the place of one that is none.
UPDATE {table}
   SET {column} = :time
 WHERE rowid = :row
   AND ({column} BETWEEN 1 AND 4200000000) IS NOT TRUE
   AND {column} IS NOT :time;

-- name: divide-messages
-- Makes seconds of the times of the named messages, which are in milliseconds or microseconds.
UPDATE messages
   SET timestamp = timestamp / :by
 WHERE id IN (SELECT wanted.value FROM json_each(CAST(:ids AS TEXT)) AS wanted)
   AND typeof(timestamp) IN ('integer', 'real')
   AND timestamp > 4200000000;

-- name: estimate-messages
-- Puts estimated times, given as pairs of message and time, in the place of those that are none.
UPDATE messages AS m
   SET timestamp = json_extract(pair.value, '$[1]')
  FROM json_each(CAST(:values AS TEXT)) AS pair
 WHERE m.id = json_extract(pair.value, '$[0]')
   AND (m.timestamp BETWEEN 1 AND 4200000000) IS NOT TRUE;
