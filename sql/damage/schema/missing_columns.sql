-- The tool asks the shape that it has read (hermes_dbtools/shape.py) and hermes_dbtools/known_shapes.toml. For an operator with the
-- sqlite3 shell.

-- name: columns
-- One row per column of a table.
SELECT name, type, "notnull", dflt_value, pk
  FROM pragma_table_info(:table)
 ORDER BY cid;

-- name: number
-- One row: the number that the last migrating open stamped.
SELECT version FROM schema_version;
