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

-- name: count
-- How many rows a table has now.
SELECT count(*) FROM main.{table};

-- name: forward
-- The rows of a table without rowids in the order of its key: whether each can be read is seen by reading it.
SELECT {columns} FROM damaged.{table} AS d NOT INDEXED;

-- name: carry-forward
-- As many rows of a table without rowids as could be read from its beginning.
INSERT OR IGNORE INTO main.{table} ({columns})
SELECT {columns} FROM damaged.{table} AS d NOT INDEXED ORDER BY {order} LIMIT :rows;

-- name: carry-backward
-- As many rows of a table without rowids as could be read from its end.
INSERT OR IGNORE INTO main.{table} ({columns})
SELECT {columns} FROM damaged.{table} AS d NOT INDEXED ORDER BY {order} LIMIT :rows;

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

-- name: indexes
-- The indexes of a table of the copy that hold an entry for each of its rows.
SELECT name FROM pragma_index_list(:table, 'damaged') WHERE NOT partial ORDER BY seq;

-- name: entries
-- The rowids that an index names, read from the index alone; in the order of the index or from its end.
SELECT d.{key} FROM damaged.{table} AS d INDEXED BY {index} ORDER BY {order};
