-- Files that a delete marked for removal, in keys of state_meta. Whether a file is there is no question for SQL.

-- name: retired
-- One row per marked file: its key, the reference to it as JSON. Keys that are no digest of the store's are left alone.
SELECT k.key, CAST(k.value AS BLOB)
  FROM state_meta AS k
 WHERE k.key >= 'gateway.media.retired.v1.' AND k.key < 'gateway.media.retired.v1/'
   AND k.key NOT GLOB 'gateway.media.retired.v1.*[^0-9a-f]*'
 ORDER BY k.key;

-- name: forget
-- Some of these keys, each a string in :keys.
DELETE FROM state_meta
 WHERE key IN (SELECT j.value FROM json_each(:keys) AS j)
   AND key >= 'gateway.media.retired.v1.' AND key < 'gateway.media.retired.v1/';
