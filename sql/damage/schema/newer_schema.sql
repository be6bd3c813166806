-- The tool asks the shape that it has read (hermes_dbtools/shape.py). For an operator with the sqlite3 shell.

-- name: required
-- One row per column of a table that an INSERT must name: one that nobody knows makes the file a newer one.
SELECT name
  FROM pragma_table_info(:table)
 WHERE "notnull" AND dflt_value IS NULL AND pk = 0
 ORDER BY name;
