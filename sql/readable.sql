-- How much of a damaged table can be read: hermes_dbtools/readable_rows.py. {table}, {index} and {columns} are names of the file.

-- name: keys
-- One row per row of the table, as one of its indexes has it: the key.
SELECT t.rowid FROM {table} AS t INDEXED BY {index};

-- name: range
-- One row: how many rows there are from one key to another, and how many could be read to the end of their last value.
SELECT count(*), count(concat({columns}))
  FROM {table} NOT INDEXED
 WHERE rowid BETWEEN :first AND :last;

-- name: one
-- The same of one key alone: asked for a range, SQLite looks at the row behind it too.
SELECT count(*), count(concat({columns}))
  FROM {table} NOT INDEXED
 WHERE rowid = :first;

-- name: forwards
-- One row per row from the first one on, each read to its end.
SELECT octet_length(concat({columns}))
  FROM {table} NOT INDEXED
 ORDER BY rowid;

-- name: backwards
-- One row per row from the last one on, each read to its end.
SELECT octet_length(concat({columns}))
  FROM {table} NOT INDEXED
 ORDER BY rowid DESC;
