-- The tool asks the three pragmas. For an operator with the sqlite3 shell.

-- name: pages
-- One row: bytes of a page, pages, and pages that hold nothing.
SELECT s.page_size, c.page_count, f.freelist_count
  FROM pragma_page_size AS s CROSS JOIN pragma_page_count AS c CROSS JOIN pragma_freelist_count AS f;
