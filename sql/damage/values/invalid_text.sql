-- Text whose bytes are not UTF-8. SQLite stores any bytes as text and has no function that tells; utf8_broken(X) and utf8_mended(X)
-- are the tool's own (hermes_dbtools/utf8.py). One call a row over all columns joined finds the suspects; a space between two
-- values keeps the end of one and the beginning of the next from making a character together.

-- name: suspects
-- One row per row of a table that may hold such text in any of its columns.
SELECT t.rowid
  FROM {table} AS t
 WHERE utf8_broken(CAST(concat_ws(' ', {columns}) AS BLOB))
 ORDER BY t.rowid;

-- name: values
-- One row per named row whose text in one column is broken: row, the session it belongs to, bytes.
SELECT t.rowid, CAST(t.{owner} AS BLOB), octet_length(t.{column})
  FROM json_each(CAST(:rows AS TEXT)) AS wanted
 CROSS JOIN {table} AS t
    ON t.rowid = wanted.value
 WHERE typeof(t.{column}) = 'text'
   AND utf8_broken(CAST(t.{column} AS BLOB))
 ORDER BY t.rowid;

-- name: prompt-used
-- needs: system_prompts sessions.tool_names
-- One row when a session uses one prompt or list of tool names. One that nobody uses belongs to unreferenced-system-prompts.
SELECT 1
  FROM system_prompts AS p
 WHERE p.rowid = :row
   AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = p.hash OR s.tool_names = p.hash);

-- name: prompt-used
-- needs: system_prompts
-- The same for files whose sessions name no lists of tools.
SELECT 1
  FROM system_prompts AS p
 WHERE p.rowid = :row
   AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.system_prompt_hash = p.hash);

-- name: title-taken
-- One row when the title of one session, mended, is the title of another: a sound one, or a broken one of a newer row.
SELECT 1
  FROM sessions AS s
 CROSS JOIN sessions AS o
    ON o.rowid <> s.rowid AND utf8_mended(CAST(o.title AS BLOB)) = utf8_mended(CAST(s.title AS BLOB))
 WHERE s.rowid = :row
   AND (o.rowid > s.rowid OR NOT utf8_broken(CAST(o.title AS BLOB)))
 LIMIT 1;

-- name: retired
-- One row when a row of state_meta says what became of a deleted session, or is a mark of this tool.
SELECT 1
  FROM state_meta AS k
 WHERE k.rowid = :row
   AND (k.key GLOB 'gateway.terminal_*' OR k.key GLOB 'gateway.retired_session.*' OR k.key GLOB 'hermes_dbtools.*');

-- name: replace
-- Puts U+FFFD in the place of each broken sequence in one value of one row.
UPDATE {table}
   SET {column} = utf8_mended(CAST({column} AS BLOB))
 WHERE rowid = :row
   AND typeof({column}) = 'text'
   AND utf8_broken(CAST({column} AS BLOB));

-- name: forget
-- Empties one broken value of one row, because mended it would be that of another row.
UPDATE {table}
   SET {column} = NULL
 WHERE rowid = :row
   AND typeof({column}) = 'text'
   AND utf8_broken(CAST({column} AS BLOB));

-- name: replace-messages
-- Puts U+FFFD in the place of each broken sequence in one column of the named messages between two ids.
UPDATE messages
   SET {column} = utf8_mended(CAST({column} AS BLOB))
 WHERE id BETWEEN :first AND :last
   AND id IN (SELECT wanted.value FROM json_each(CAST(:rows AS TEXT)) AS wanted)
   AND typeof({column}) = 'text'
   AND utf8_broken(CAST({column} AS BLOB));

-- name: message-rows
-- The named messages with the bytes of the value that changes.
SELECT m.id, octet_length(m.{column}) AS bytes
  FROM json_each(CAST(:rows AS TEXT)) AS wanted
 CROSS JOIN messages AS m
    ON m.id = wanted.value
 ORDER BY m.id;
