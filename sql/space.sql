-- What takes how much room in one file. {places} are filled with names that the file itself has.

-- name: trees
-- One row per tree of the file: its name, pages, bytes, bytes that are free in them, bytes of overflow pages, bytes that are in use on the
-- other pages, cells on the leaves. Every page is read once.
SELECT d.name,
       count(*),
       sum(d.pgsize),
       sum(d.unused),
       total(CASE d.pagetype WHEN 'overflow' THEN d.pgsize END),
       total(CASE d.pagetype WHEN 'overflow' THEN 0 ELSE d.pgsize - d.unused END),
       total(CASE d.pagetype WHEN 'leaf' THEN d.ncell END)
  FROM dbstat AS d
 WHERE d.schema = 'main'
 GROUP BY d.name
 ORDER BY d.name;

-- name: message-bytes
-- One row per message: its session, and the bytes of all its values.
SELECT CAST(t.session_id AS BLOB), octet_length(concat({columns})) FROM messages AS t NOT INDEXED;

-- name: session-bytes
-- One row per session: id, source, the bytes of all its values.
SELECT CAST(t.id AS BLOB), CAST(t.source AS BLOB), octet_length(concat({columns})) FROM sessions AS t NOT INDEXED;

-- name: orphans
-- How many rows of a table name a session that has no row, and the bytes of their values.
SELECT count(*), total(octet_length(concat({columns})))
  FROM {table} AS t NOT INDEXED
 WHERE t.{column} IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = t.{column});
