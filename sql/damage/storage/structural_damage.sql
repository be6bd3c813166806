-- The gate (hermes_dbtools/structure.py) asks the first of one table after the other, so that one bad page does not hide the
-- rest. For an operator with the sqlite3 shell and a COPY of the file.

-- name: check
-- One row per fault of the table and its indexes; the one row `ok` where there is none.
SELECT quick_check AS line
  FROM pragma_quick_check(:table);

-- name: root-pages
-- One row per table or index with its root page: the number N that a line names as `Tree N`.
SELECT rootpage, type, name, tbl_name
  FROM sqlite_schema
 WHERE rootpage > 0
 ORDER BY rootpage;
