-- Rows of a damaged table into the new one: run by hermes_dbtools/salvage/carrying.py. `damaged` is the private copy.

-- name: carry
-- The rows of neighbouring whole leaves, by the table itself and exactly as many as those leaves hold: after the last of
-- them SQLite would look at the next leaf, which may be damaged.
INSERT OR IGNORE INTO main.{table} ({columns})
SELECT {values}
  FROM damaged.{table} AS d NOT INDEXED
 WHERE d.{key} >= :first
 ORDER BY d.{key}
 LIMIT :rows;

-- name: put
-- One row that was decoded from its page; {columns} are as many as its record has, those behind them keep their default.
INSERT OR IGNORE INTO main.{table} ({columns}) VALUES ({values});

-- name: last
-- The highest rowid that a table has now.
SELECT max({key}) FROM main.{table};

-- name: take-back
-- Rows of leaves that gave others than they hold go again, before the leaves are read one by one.
DELETE FROM main.{table} WHERE {key} >= :first;

-- name: ordered
-- The rows of a table without rowids in the order of its key: whether each can be read is seen by reading it.
SELECT {types} FROM {table} NOT INDEXED ORDER BY {order};

-- name: carry-ordered
-- As many rows of a table without rowids as could be read from one of its ends.
INSERT OR IGNORE INTO main.{table} ({columns})
SELECT {columns} FROM damaged.{table} NOT INDEXED ORDER BY {order} LIMIT :rows;

-- name: raise-sequence
-- The highest number that the old file had given away: none of them is given again.
UPDATE sqlite_sequence SET seq = max(seq, :seq) WHERE name = :table;

-- name: begin-sequence
-- The same for a table into which no row came.
INSERT INTO sqlite_sequence (name, seq)
SELECT :table, :seq
 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :table);

-- name: autoincrement
-- Whether the file counts the ids of some table.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence');
