-- What was lost of a table: run by hermes_dbtools/salvage/losses.py. What asks indexes is
-- asked of the private copy on a connection of its own: an answer of "malformed" would make the new file read-only.

-- name: make-known
-- Ids of rows that something else than the table itself proves.
CREATE TEMP TABLE IF NOT EXISTS known_rows (id INTEGER PRIMARY KEY);

-- name: forget-known
-- Nothing is known of the next table yet.
DELETE FROM temp.known_rows;

-- name: indexes
-- The indexes of a table of the copy that hold an entry for each of its rows.
SELECT name FROM pragma_index_list(:table) WHERE NOT partial ORDER BY seq DESC;

-- name: entries
-- One row per entry of an index of the copy: the id of its row. The table itself is not read.
SELECT {key} FROM {table} INDEXED BY {index} ORDER BY {order};

-- name: know
-- Ids that an index proved.
INSERT OR IGNORE INTO temp.known_rows (id) SELECT value FROM carray(:ids);

-- name: keep-lost
-- Only the rows that the new file lacks stay in the list.
DELETE FROM temp.known_rows WHERE id IN (SELECT {key} FROM main.{table});

-- name: lost
-- How many rows are proved and lost.
SELECT count(*) FROM temp.known_rows;

-- name: ranges
-- The lost rows as ranges of neighbouring ids, the first of them.
SELECT min(k.id), max(k.id)
  FROM (SELECT id, id - row_number() OVER (ORDER BY id) AS island FROM temp.known_rows) AS k
 GROUP BY k.island
 ORDER BY 1
 LIMIT :limit;

-- name: found-between
-- How many rows of a range of ids the new file has.
SELECT count(*) FROM main.{table} WHERE {key} > :low AND {key} <= :high;

-- name: highest
-- The highest id that the new file has.
SELECT max({key}) FROM main.{table};

-- name: lost-ids
-- The id of each lost row.
SELECT id FROM temp.known_rows ORDER BY id;

-- name: lost-by-session
-- One row per session of the copy with lost messages that its index still names: its id and how many; the most first.
SELECT CAST(session_id AS BLOB), count(*)
  FROM messages INDEXED BY idx_messages_session
 WHERE id IN (SELECT value FROM carray(:ids))
 GROUP BY session_id
 ORDER BY 2 DESC, 1
 LIMIT :limit;
