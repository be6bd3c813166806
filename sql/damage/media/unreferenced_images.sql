-- Files that nothing names. Which names texts give is read by sql/named_files.sql; what lies in a folder is no question for SQL.

-- name: retired
-- The keys of the files that a delete has marked for removal: they are findings of retired_media_leftovers.
SELECT k.key
  FROM state_meta AS k
 WHERE k.key >= 'gateway.media.retired.v1.' AND k.key < 'gateway.media.retired.v1/'
   AND k.key NOT GLOB 'gateway.media.retired.v1.*[^0-9a-f]*'
 ORDER BY k.key;

-- name: any-session
-- One row where the file has a session.
SELECT 1 FROM sessions LIMIT 1;
