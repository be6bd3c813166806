-- The counter of message ids. SQLite keeps it in sqlite_sequence, which holds one row for each table that numbers its rows for good.

-- name: find
-- One row when the counter is missing or behind: the highest id, the lowest counter, how many counters there are, how many are behind.
SELECT held.highest, min(CASE WHEN typeof(q.seq) IN ('integer', 'real') THEN q.seq ELSE 0 END), count(q.rowid),
       count(CASE WHEN CAST(q.seq AS INTEGER) >= held.highest THEN NULL ELSE q.rowid END)
  FROM (SELECT max(m.id) AS highest FROM messages AS m) AS held
  LEFT JOIN sqlite_sequence AS q ON q.name = 'messages'
 WHERE held.highest > 0
 GROUP BY held.highest
HAVING count(q.rowid) = 0
    OR count(CASE WHEN CAST(q.seq AS INTEGER) >= held.highest THEN NULL ELSE q.rowid END) > 0
 ORDER BY held.highest;

-- name: raise
-- Raises the counter to the highest id; one that is there already stays.
UPDATE sqlite_sequence
   SET seq = :highest
 WHERE name = 'messages'
   AND (CAST(seq AS INTEGER) >= :highest) IS NOT TRUE;

-- name: insert
-- Makes the counter where it is missing.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'messages', :highest
 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence AS q WHERE q.name = 'messages');
