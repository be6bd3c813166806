-- Questions and one change of whole copies: hermes_dbtools/backups.

-- name: schema
-- One row per object of the file with the text that made it.
SELECT type, name, tbl_name, CAST(sql AS BLOB)
  FROM sqlite_schema
 ORDER BY type, name;

-- name: generation
-- The name that the newest stores give to a file, from which its application_id derives; no row in older ones.
SELECT CAST(value AS BLOB) FROM state_meta WHERE key = 'db_file_generation';

-- name: keep-generation
-- Gives a copy the name of the file whose place it takes.
INSERT INTO state_meta (key, value) VALUES ('db_file_generation', CAST(:value AS TEXT))
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
