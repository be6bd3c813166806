-- What a full-text index holds, against the messages it is made from: run by hermes_dbtools/search_survey.py.
-- {…} stands for quoted identifiers of the file's own schema. Where a refill is in progress, rows above :progress up to :high_water
-- are not in the index yet.

-- name: marks
-- The marks of the search indexes that are set, with their numbers (0 for other text).
SELECT key, CAST(value AS INTEGER)
  FROM state_meta
 WHERE key IN (SELECT value FROM json_each(:keys))
 ORDER BY key;

-- name: absent
-- How many messages have no entry in an index, those apart that a refill in progress will bring: 0 says that none is missing.
SELECT COUNT(*)
  FROM messages AS m
 WHERE NOT (m.id > :progress AND m.id <= :high_water)
   AND NOT EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = m.id);

-- name: absent_unindexed
-- The same by the table alone: an index of messages may hide rows.
SELECT COUNT(*)
  FROM messages AS m NOT INDEXED
 WHERE NOT (m.id > :progress AND m.id <= :high_water)
   AND NOT EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = m.id);

-- name: missing_messages
-- A message that is not in an index of messages: its id, and whether an indexed one lies between it and the missing one before.
SELECT n.id, n.before IS NULL OR EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id > n.before AND d.id < n.id)
  FROM (SELECT m.id AS id, LAG(m.id) OVER (ORDER BY m.id) AS before
          FROM messages AS m NOT INDEXED
         WHERE NOT (m.id > :progress AND m.id <= :high_water)
           AND NOT EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = m.id)) AS n
 ORDER BY n.id;

-- name: missing_rows
-- The same for an index that reads a view: only what the view gives belongs in.
SELECT n.id, n.before IS NULL OR EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id > n.before AND d.id < n.id)
  FROM (SELECT m.id AS id, LAG(m.id) OVER (ORDER BY m.id) AS before
          FROM messages AS m NOT INDEXED
         WHERE NOT (m.id > :progress AND m.id <= :high_water)
           AND NOT EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = m.id)
           AND EXISTS (SELECT 1 FROM {source} AS s WHERE s.{rowid} = m.id)) AS n
 ORDER BY n.id;

-- name: left
-- An entry whose message is gone, or that is in already although a refill in progress will bring it. An entry that a view does
-- not give any more, because its session changed, is none: the store leaves it where it is.
SELECT d.id
  FROM {docsize} AS d
 WHERE (d.id > :progress AND d.id <= :high_water)
    OR NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = d.id)
 ORDER BY d.id;

-- name: message_total
-- How many messages there are.
SELECT COUNT(*) FROM messages;

-- name: waiting
-- How many messages a refill in progress has still to bring.
SELECT COUNT(*) FROM messages AS m NOT INDEXED WHERE m.id > :progress AND m.id <= :high_water;

-- name: waiting_rows
-- The same for an index that reads a view.
SELECT COUNT(*) FROM {source} AS s WHERE s.{rowid} > :progress AND s.{rowid} <= :high_water;

-- name: table_bytes
-- The bytes of the pages of some tables.
SELECT COALESCE(SUM(pgsize), 0)
  FROM dbstat
 WHERE aggregate = 1 AND name IN (SELECT value FROM json_each(:tables));

-- name: probe
-- Looks one rare word up: an index whose own records cannot be read raises here.
SELECT rowid FROM {index} WHERE {index} MATCH 'hermesdbtoolsprobe' LIMIT 1;

-- name: segment_record
-- The record of an index: which segments it has, by level.
SELECT block FROM {data} WHERE id = 10;

-- name: segments
-- Each segment that an index has pages of, by jumps from one to the next.
WITH RECURSIVE s(id) AS (
  SELECT MIN(segid) FROM {segment_pages}
   UNION ALL
  SELECT (SELECT MIN(p.segid) FROM {segment_pages} AS p WHERE p.segid > s.id) FROM s WHERE s.id IS NOT NULL
)
SELECT id FROM s WHERE id IS NOT NULL ORDER BY id;

-- name: segment_pages_told
-- Pages of a segment: id, bytes, and the first four bytes, which tell where the words end and the places of the words begin.
SELECT id, length(block), CAST(substr(block, 1, 4) AS BLOB) FROM {data} WHERE id BETWEEN :first AND :last ORDER BY id;

-- name: pages_led_to
-- The pages of a segment that a word is looked up by.
SELECT pgno >> 1 FROM {segment_pages} WHERE segid = :segment ORDER BY term;

-- name: lost_texts
-- How many of 65 entries from the first to the last have no text in an index that keeps its own copy.
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT n.i + 1 FROM n WHERE n.i < 64),
span AS (SELECT MIN(d.id) AS first, MAX(d.id) AS last FROM {docsize} AS d)
SELECT COUNT(*)
  FROM (SELECT (SELECT MIN(d.id) FROM {docsize} AS d WHERE d.id >= span.first + (span.last - span.first) * n.i / 64) AS id
          FROM n, span) AS s
 WHERE s.id IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM {stored} AS c WHERE c.id = s.id);
