-- Results of tool calls that do not name their tool, and the calls of their session that do. A list of calls may be encoded
-- twice. UNION leaves one row for each id and tool, so an id that calls of two tools share has two rows and is left alone.
-- CROSS JOIN: SQLite takes the messages one by one, each with a look into an index of the tools, and not the other way about.

-- name: tools
-- One row per id that calls of one session give to one tool only: the id and the tool.
WITH
  calls(list) AS (
    SELECT CASE WHEN NOT json_valid(a.tool_calls) THEN '[]'
                WHEN json_type(a.tool_calls) = 'array' THEN a.tool_calls
                WHEN json_type(a.tool_calls) <> 'text' OR NOT json_valid(a.tool_calls ->> '$') THEN '[]'
                WHEN json_type(a.tool_calls ->> '$') = 'array' THEN a.tool_calls ->> '$'
                ELSE '[]' END
      FROM messages AS a
     WHERE a.session_id = CAST(:session AS TEXT)
       AND a.tool_calls IS NOT NULL),
  named(call, tool) AS (
    SELECT CAST(json_extract(calls.list, c.fullkey || '.call_id') AS TEXT), json_extract(calls.list, c.fullkey || '.function.name')
      FROM calls
     INNER JOIN json_each(calls.list) AS c
    UNION
    SELECT CAST(json_extract(calls.list, c.fullkey || '.id') AS TEXT), json_extract(calls.list, c.fullkey || '.function.name')
      FROM calls
     INNER JOIN json_each(calls.list) AS c)
SELECT call, min(tool) AS tool
  FROM named
 WHERE call <> ''
 GROUP BY call
HAVING count(*) = 1
   AND typeof(min(tool)) = 'text'
   AND min(tool) <> '';

-- name: unnamed
-- needs: messages.active
-- with: tools
-- One row per active result of one session that lacks the name that its call has: its id and that name.
SELECT m.id AS id, t.tool AS tool
  FROM messages AS m
 CROSS JOIN tools AS t ON t.call = m.tool_call_id
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND coalesce(m.tool_name, '') = ''
   AND m.active IS NOT 0;

-- name: unnamed
-- with: tools
-- The same for files older than the active flag: every row is active.
SELECT m.id AS id, t.tool AS tool
  FROM messages AS m
 CROSS JOIN tools AS t ON t.call = m.tool_call_id
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND coalesce(m.tool_name, '') = '';

-- name: nameable
-- with: unnamed
-- One row: how many active results of one session lack a name that their call has; first and last id.
SELECT count(*), min(id), max(id)
  FROM unnamed;

-- name: repair-rows
-- with: unnamed
-- One row per result that the repair changes: its id, and the bytes that recording one name takes.
SELECT id, 64 AS bytes
  FROM unnamed
 ORDER BY id;

-- name: repair
-- with: unnamed
-- Gives results of one session between two ids the name that their call has.
UPDATE messages
   SET tool_name = found.tool
  FROM (SELECT id, tool
          FROM unnamed
         WHERE id BETWEEN :first AND :last) AS found
 WHERE messages.id = found.id;
