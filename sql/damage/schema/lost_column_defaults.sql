-- The tool asks the shape that it has read (hermes_dbtools/shape.py) and hermes_dbtools/known_shapes.toml. For an operator with the
-- sqlite3 shell.

-- name: default
-- One row: what SQLite puts into a column that an INSERT leaves out, and whether NULL is allowed.
SELECT dflt_value, "notnull"
  FROM pragma_table_info(:table)
 WHERE name = :column;
