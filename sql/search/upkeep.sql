-- Keeping a full-text index right while rows of messages change: run by hermes_dbtools/search_index.py.
-- {…} stands for quoted identifiers of the file's own schema, or for an expression at the end of this file.

-- name: make_entries
-- The entries of the touched messages, one row for each index that holds one; form says by which text it came in.
CREATE TEMP TABLE IF NOT EXISTS search_entries (
    index_name TEXT NOT NULL,
    id INTEGER NOT NULL,
    form TEXT NOT NULL,
    PRIMARY KEY (index_name, id)
) WITHOUT ROWID;

-- name: make_regrouped
-- The messages that stay as they are while their session appears, goes or changes: filled by the caller, or empty.
CREATE TEMP TABLE IF NOT EXISTS regrouped_messages (id INTEGER PRIMARY KEY);

-- name: forget_entries
-- Nothing is known of the entries of an index yet.
DELETE FROM temp.search_entries WHERE index_name = :index;

-- name: find_entries
-- The touched messages that an index holds now: those, and only those, have a row in its docsize table.
INSERT INTO temp.search_entries (index_name, id, form)
SELECT :index, t.id, 'source'
  FROM temp.touched_messages AS t
  JOIN {docsize} AS d ON d.id = t.id;

-- name: set_form
-- One entry came in by another text than its source gives today.
UPDATE temp.search_entries SET form = :form WHERE index_name = :index AND id = :id;

-- name: forms
-- Each form that entries of one index have.
SELECT DISTINCT form FROM temp.search_entries WHERE index_name = :index ORDER BY form;

-- name: touched
-- Whether any message is touched, and whether any is regrouped.
SELECT EXISTS (SELECT 1 FROM temp.touched_messages), EXISTS (SELECT 1 FROM temp.regrouped_messages);

-- name: find_left
-- The regrouped messages that an index holds although its source leaves them out now.
INSERT INTO temp.search_entries (index_name, id, form)
SELECT :index, r.id, 'messages'
  FROM temp.regrouped_messages AS r
  JOIN {docsize} AS d ON d.id = r.id
 WHERE NOT EXISTS (SELECT 1 FROM {source} AS s WHERE s.{rowid} = r.id)
   AND EXISTS (SELECT 1 FROM messages AS m WHERE m.id = r.id);

-- name: mark
-- The number that a mark of the search indexes holds; no row where it is not set.
SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = :key;

-- name: settings
-- What was configured on an index beyond its CREATE text.
SELECT k, v FROM {config} WHERE k <> 'version' ORDER BY k;

-- name: entry_bytes
-- The bytes of the messages whose entries a removal through the index takes out.
SELECT COALESCE(SUM(COALESCE(octet_length(m.content), 0) + COALESCE(octet_length(m.tool_name), 0)
                    + COALESCE(octet_length(m.tool_calls), 0)), 0)
  FROM temp.search_entries AS e
  LEFT JOIN messages AS m ON m.id = e.id
 WHERE e.index_name = :index;

-- name: entry_count
-- How many touched entries an index holds, and how many messages are touched.
SELECT (SELECT COUNT(*) FROM temp.search_entries WHERE index_name = :index),
       (SELECT COUNT(*) FROM temp.touched_messages);

-- name: touched_count
-- How many messages are touched.
SELECT COUNT(*) FROM temp.touched_messages;

-- name: entry_total
-- How many entries an index holds.
SELECT COUNT(*) FROM {docsize};

-- name: total_bytes
-- The bytes of the indexed columns of every message.
SELECT COALESCE(SUM(COALESCE(octet_length(content), 0) + COALESCE(octet_length(tool_name), 0)
                    + COALESCE(octet_length(tool_calls), 0)), 0)
  FROM messages;

-- name: strays
-- The touched entries whose message is gone: nobody knows their text.
SELECT COUNT(*)
  FROM temp.search_entries AS e
 WHERE e.index_name = :index
   AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = e.id);

-- name: nul_entries_inline
-- A touched entry whose stored text holds a NUL byte: its id, its token counts as FTS5 packs them, its text.
SELECT e.id, d.sz, CAST(c.c0 AS BLOB)
  FROM temp.search_entries AS e
  JOIN {docsize} AS d ON d.id = e.id
  JOIN {stored} AS c ON c.id = e.id
 WHERE e.index_name = :index
   AND instr(CAST(c.c0 AS BLOB), x'00') > 0
 ORDER BY e.id;

-- name: nul_entries_external
-- A touched entry whose text holds a NUL byte: its id, its token counts as FTS5 packs them, its columns.
SELECT e.id, d.sz, {blobs}
  FROM temp.search_entries AS e
  JOIN {docsize} AS d ON d.id = e.id
  JOIN {source} AS s ON s.{rowid} = e.id
 WHERE e.index_name = :index
   AND {nuls} > 0
 ORDER BY e.id;

-- name: absent_entries
-- A touched entry that the source leaves out today (its session went, or changed its kind): id, counts, columns.
SELECT e.id, d.sz, {blobs}
  FROM temp.search_entries AS e
  JOIN {docsize} AS d ON d.id = e.id
  JOIN messages AS s ON s.id = e.id
 WHERE e.index_name = :index
   AND NOT EXISTS (SELECT 1 FROM {source} AS o WHERE o.{rowid} = e.id)
 ORDER BY e.id;

-- name: long_entries
-- A touched answer of a tool that may have come in cut: id, token counts, whether the triggers would cut it, its head.
SELECT e.id, d.sz, s.id > :mark, CAST(substr(COALESCE(s.content, ''), 1, :limit) AS BLOB)
  FROM temp.search_entries AS e
  JOIN {docsize} AS d ON d.id = e.id
  JOIN messages AS s ON s.id = e.id
 WHERE e.index_name = :index
   AND s.role = 'tool'
   AND octet_length(s.content) > :limit
 ORDER BY e.id;

-- name: whole_content
-- The whole text of one message.
SELECT CAST(content AS BLOB) FROM messages WHERE id = :id;

-- name: nul_sample_inline
-- The newest entries whose stored text holds a NUL byte, of the newest rows of an index.
SELECT c.id, d.sz, CAST(c.c0 AS BLOB)
  FROM (SELECT id, c0 FROM {stored} ORDER BY id DESC LIMIT :rows) AS c
  JOIN {docsize} AS d ON d.id = c.id
 WHERE instr(CAST(c.c0 AS BLOB), x'00') > 0
 ORDER BY c.id DESC
 LIMIT :sample;

-- name: nul_sample_external
-- The newest entries whose text holds a NUL byte, of the newest rows of an index.
SELECT d.id, d.sz, {blobs}
  FROM (SELECT id, sz FROM {docsize} ORDER BY id DESC LIMIT :rows) AS d
  JOIN {source} AS s ON s.{rowid} = d.id
 WHERE {nuls} > 0
 ORDER BY d.id DESC
 LIMIT :sample;

-- name: new_nul_rows
-- Whether a message that is about to come in holds a NUL byte.
SELECT EXISTS (
    SELECT 1
      FROM (SELECT id FROM temp.touched_messages UNION SELECT id FROM temp.regrouped_messages) AS t
      JOIN messages AS m ON m.id = t.id
     WHERE instr(CAST(m.content AS BLOB), x'00') > 0
        OR instr(CAST(m.tool_name AS BLOB), x'00') > 0
        OR instr(CAST(m.tool_calls AS BLOB), x'00') > 0
);

-- name: drop_trigger
-- A trigger stands aside; its text is kept and runs again after the change.
DROP TRIGGER {trigger};

-- name: drop_index
-- An index goes with all its entries; its text is kept and runs again after the change.
DROP TABLE {index};

-- name: restore_setting
-- What was configured on an index before it was made anew.
INSERT INTO {index} ({index}, rank) VALUES (:name, :value);

-- name: remove_inline
-- The touched entries leave an index that keeps its own text.
DELETE FROM {index} WHERE rowid IN (SELECT id FROM temp.search_entries WHERE index_name = :index);

-- name: remove_external
-- The touched entries of one form leave an index by the very text they came in with.
INSERT INTO {index} ({index}, rowid, {columns})
SELECT 'delete', e.id, {texts}
  FROM temp.search_entries AS e
  JOIN {source} AS s ON s.{rowid} = e.id
 WHERE e.index_name = :index
   AND e.form = :form
 ORDER BY e.id;

-- name: add_touched
-- The touched or regrouped messages that belong in come in, but for those a refill in progress will bring.
INSERT INTO {index} (rowid, {columns})
SELECT s.{rowid}, {texts}
  FROM (SELECT id FROM temp.touched_messages UNION SELECT id FROM temp.regrouped_messages) AS t
  JOIN {source} AS s ON s.{rowid} = t.id
 WHERE NOT (t.id > :progress AND t.id <= :high_water)
   AND NOT EXISTS (SELECT 1 FROM {docsize} AS d WHERE d.id = t.id)
 ORDER BY t.id;

-- name: add_all
-- Every message of the source comes in, but for those a refill in progress will bring.
INSERT INTO {index} (rowid, {columns})
SELECT s.{rowid}, {texts}
  FROM {source} AS s
 WHERE NOT (s.{rowid} > :progress AND s.{rowid} <= :high_water)
 ORDER BY s.{rowid};

-- name: until_nul
-- Expression: a text up to its first NUL byte. Places are bytes only where both operands of instr() are blobs.
SELECT CASE instr(CAST({text} AS BLOB), x'00') WHEN 0 THEN {text}
            ELSE CAST(substr(CAST({text} AS BLOB), 1, instr(CAST({text} AS BLOB), x'00') - 1) AS TEXT) END;

-- name: head
-- Expression: of an answer of a tool above the mark the first characters, as the store's own triggers cut it.
SELECT CASE WHEN s.role = 'tool' AND s.id > :mark THEN substr(COALESCE({text}, ''), 1, :limit) ELSE {text} END;

-- name: joined
-- Expression: the one text of an inline index.
SELECT COALESCE({text}, '') || ' ' || COALESCE(s.tool_name, '') || ' ' || COALESCE(s.tool_calls, '');

-- name: blob
-- Expression: the bytes of a column, which need not be UTF-8.
SELECT CAST({text} AS BLOB);

-- name: nul_place
-- Expression: where a column has its first NUL byte, 0 where it has none.
SELECT COALESCE(instr(CAST({text} AS BLOB), x'00'), 0);
