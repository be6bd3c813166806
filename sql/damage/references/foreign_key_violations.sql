-- Declared keys that no other class of this family looks at. SQLite checks them itself, table by table, so that the
-- keys of large tables that are looked at elsewhere cost nothing here.

-- name: find
-- One row per declared key of a table that some row breaks: the number of the key and how many rows break it.
SELECT f.fkid, count(*)
  FROM pragma_foreign_key_check(:table) AS f
 GROUP BY f.fkid
 ORDER BY f.fkid;

-- name: examples
-- The first rows that break one key, by row id; NULL for a table without row ids.
SELECT f."rowid"
  FROM pragma_foreign_key_check(:table) AS f
 WHERE f.fkid = :key
 ORDER BY f."rowid"
 LIMIT 5;

-- name: unique-keys
-- One row per column of each index that makes rows of a table unique: the index and the column.
SELECT l.name, i.name
  FROM pragma_index_list(:table) AS l
 CROSS JOIN pragma_index_info(l.name) AS i
 WHERE l."unique" AND NOT l.partial
 ORDER BY l.name, i.seqno;
