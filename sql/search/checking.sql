-- The deep check of a full-text index: its tables and the texts it is made from are carried into a scratch database, where FTS5
-- compares them: run by hermes_dbtools/search_check.py. {…} stands for quoted identifiers of the file's own schema, or for an
-- expression.

-- name: take_data
-- The blocks of an index, which FTS5 reads whatever their type.
SELECT id, CAST(block AS BLOB) FROM {table};

-- name: take_idx
-- Where the terms of an index begin.
SELECT segid, term, pgno FROM {table};

-- name: take_docsize
-- The token counts of each entry.
SELECT id, sz FROM {table};

-- name: take_config
-- What was configured on an index.
SELECT k, v FROM {table};

-- name: take_content
-- The texts that an inline index keeps itself, as bytes: they need not be UTF-8.
SELECT id, CAST(c0 AS BLOB) FROM {table};

-- name: take_texts
-- The texts that an index of external content is made from, one row per entry, as bytes.
SELECT s.{rowid}, {blobs}
  FROM {source} AS s
 WHERE EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = s.{rowid});

-- name: take_texts_left_out
-- The texts of the entries that the index's view does not give any more, because their session changed.
SELECT s.id, {blobs}
  FROM messages AS s
 WHERE EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = s.id)
   AND NOT EXISTS (SELECT 1 FROM {source} AS o WHERE o.{rowid} = s.id);

-- name: put_data
-- In the scratch database: a block.
INSERT INTO {table} (id, block) VALUES (:id, :block);

-- name: put_idx
-- In the scratch database: where a term begins.
INSERT INTO {table} (segid, term, pgno) VALUES (:segid, :term, :pgno);

-- name: put_docsize
-- In the scratch database: the token counts of an entry.
INSERT INTO {table} (id, sz) VALUES (:id, :sz);

-- name: put_config
-- In the scratch database: a setting.
INSERT INTO {table} (k, v) VALUES (:k, :v);

-- name: put_content
-- In the scratch database: a text of an inline index.
INSERT INTO {table} (id, c0) VALUES (:id, CAST(:text AS TEXT));

-- name: empty_table
-- In the scratch database: what a new index begins with goes.
DELETE FROM {table};

-- name: make_texts
-- In the scratch database: where the index reads its texts; a missing column is NULL.
CREATE TABLE entry_texts (id INTEGER PRIMARY KEY, content, tool_name, tool_calls);

-- name: put_texts
-- In the scratch database: the texts of one entry.
INSERT INTO entry_texts (id, content, tool_name, tool_calls)
VALUES (:id, CAST(:content AS TEXT), CAST(:tool_name AS TEXT), CAST(:tool_calls AS TEXT));

-- name: nul_rows_inline
-- An entry whose stored text holds a NUL byte: its id, its token counts as FTS5 packs them, its text.
SELECT c.id, d.sz, CAST(c.c0 AS BLOB)
  FROM {stored} AS c
  JOIN {docsize} AS d ON d.id = c.id
 WHERE instr(CAST(c.c0 AS BLOB), x'00') > 0
 ORDER BY c.id;

-- name: nul_rows_external
-- An entry whose text holds a NUL byte: its id, its token counts as FTS5 packs them, its columns.
SELECT d.id, d.sz, {blobs}
  FROM {docsize} AS d
  JOIN {source} AS s ON s.{rowid} = d.id
 WHERE {nuls} > 0
 ORDER BY d.id;

-- name: long_answers
-- Whether an answer of a tool is longer than what the triggers keep of it: the mark above which they cut may have moved since.
SELECT EXISTS (SELECT 1 FROM messages AS m WHERE m.role = 'tool' AND octet_length(m.content) > :limit);

-- name: strict_check
-- FTS5 compares every entry with the text it is made from, and raises where they differ; no row is changed.
INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', :strict);

-- name: other_texts
-- The entries that hold another text than their message gives, whole or up to its first NUL byte: how many, and the first one's id.
SELECT COUNT(*), MIN(c.id)
  FROM {stored} AS c
  JOIN messages AS s ON s.id = c.id
 WHERE CAST(c.c0 AS BLOB) IS NOT CAST({whole} AS BLOB)
   AND CAST(c.c0 AS BLOB) IS NOT CAST({until_nul} AS BLOB);
