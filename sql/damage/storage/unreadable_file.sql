-- Nothing of this class is asked of SQLite by the tool: the file is looked at before any open. These are for an operator
-- with the sqlite3 shell and a COPY of the file.

-- name: expected-size
-- One row: the bytes that the header promises. A file shorter than that is cut off.
SELECT page_count * page_size AS expected_bytes
  FROM pragma_page_count CROSS JOIN pragma_page_size;
