-- The tool asks the shape that it has read (hermes_dbtools/shape.py) and hermes_dbtools/known_shapes.toml. For an operator with the
-- sqlite3 shell.

-- name: key
-- One row per column of the primary key of a table, in the order of the key; none where it has none.
SELECT name
  FROM pragma_table_info(:table)
 WHERE pk > 0
 ORDER BY pk;
