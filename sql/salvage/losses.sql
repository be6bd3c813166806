-- What was lost of a table: run by hermes_dbtools/salvage/losses.py on the new file.

-- name: make-known
-- Ids of rows that something else than the table itself proves.
CREATE TEMP TABLE IF NOT EXISTS known_rows (id INTEGER PRIMARY KEY);

-- name: forget-known
-- Nothing is known of the next table yet.
DELETE FROM temp.known_rows;

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

-- name: lost-ids
-- The id of each lost row.
SELECT id FROM temp.known_rows ORDER BY id;
