-- Results of tool calls that do not name their tool, and the calls of their session that do. A list of calls may be encoded
-- twice. UNION leaves one row for each id and tool, so an id that calls of two tools share has two rows and is left alone.
-- CROSS JOIN: SQLite takes the messages one by one, each with a look into an index of the tools, and not the other way about.

-- name: nameable
-- needs: messages.active
-- One row: how many active results of one session lack a name that their call has; first and last id.
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
     INNER JOIN json_each(calls.list) AS c),
  tools(call, tool) AS MATERIALIZED (
    SELECT call, min(tool)
      FROM named
     WHERE call <> ''
     GROUP BY call
    HAVING count(*) = 1
       AND typeof(min(tool)) = 'text'
       AND min(tool) <> '')
SELECT count(*), min(m.id), max(m.id)
  FROM messages AS m
 CROSS JOIN tools AS t ON t.call = m.tool_call_id
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND coalesce(m.tool_name, '') = ''
   AND m.active IS NOT 0;

-- name: nameable
-- The same for files older than the active flag: every row is active.
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
     INNER JOIN json_each(calls.list) AS c),
  tools(call, tool) AS MATERIALIZED (
    SELECT call, min(tool)
      FROM named
     WHERE call <> ''
     GROUP BY call
    HAVING count(*) = 1
       AND typeof(min(tool)) = 'text'
       AND min(tool) <> '')
SELECT count(*), min(m.id), max(m.id)
  FROM messages AS m
 CROSS JOIN tools AS t ON t.call = m.tool_call_id
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND coalesce(m.tool_name, '') = '';

-- name: repair-rows
-- needs: messages.active
-- One row per result that the repair changes: its id, and the bytes that recording one name takes.
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
     INNER JOIN json_each(calls.list) AS c),
  tools(call, tool) AS MATERIALIZED (
    SELECT call, min(tool)
      FROM named
     WHERE call <> ''
     GROUP BY call
    HAVING count(*) = 1
       AND typeof(min(tool)) = 'text'
       AND min(tool) <> '')
SELECT m.id, 64 AS bytes
  FROM messages AS m
 CROSS JOIN tools AS t ON t.call = m.tool_call_id
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND coalesce(m.tool_name, '') = ''
   AND m.active IS NOT 0
 ORDER BY m.id;

-- name: repair-rows
-- The same for files older than the active flag: every row is active.
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
     INNER JOIN json_each(calls.list) AS c),
  tools(call, tool) AS MATERIALIZED (
    SELECT call, min(tool)
      FROM named
     WHERE call <> ''
     GROUP BY call
    HAVING count(*) = 1
       AND typeof(min(tool)) = 'text'
       AND min(tool) <> '')
SELECT m.id, 64 AS bytes
  FROM messages AS m
 CROSS JOIN tools AS t ON t.call = m.tool_call_id
 WHERE m.session_id = CAST(:session AS TEXT)
   AND m.role = 'tool'
   AND coalesce(m.tool_name, '') = ''
 ORDER BY m.id;

-- name: repair
-- needs: messages.active
-- Gives results of one session between two ids the name that their call has.
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
     INNER JOIN json_each(calls.list) AS c),
  tools(call, tool) AS MATERIALIZED (
    SELECT call, min(tool)
      FROM named
     WHERE call <> ''
     GROUP BY call
    HAVING count(*) = 1
       AND typeof(min(tool)) = 'text'
       AND min(tool) <> '')
UPDATE messages
   SET tool_name = found.tool
  FROM (SELECT m.id, t.tool
          FROM messages AS m
         CROSS JOIN tools AS t ON t.call = m.tool_call_id
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.role = 'tool'
           AND coalesce(m.tool_name, '') = ''
           AND m.id BETWEEN :first AND :last
           AND m.active IS NOT 0) AS found
 WHERE messages.id = found.id;

-- name: repair
-- The same for files older than the active flag: every row is active.
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
     INNER JOIN json_each(calls.list) AS c),
  tools(call, tool) AS MATERIALIZED (
    SELECT call, min(tool)
      FROM named
     WHERE call <> ''
     GROUP BY call
    HAVING count(*) = 1
       AND typeof(min(tool)) = 'text'
       AND min(tool) <> '')
UPDATE messages
   SET tool_name = found.tool
  FROM (SELECT m.id, t.tool
          FROM messages AS m
         CROSS JOIN tools AS t ON t.call = m.tool_call_id
         WHERE m.session_id = CAST(:session AS TEXT)
           AND m.role = 'tool'
           AND coalesce(m.tool_name, '') = ''
           AND m.id BETWEEN :first AND :last) AS found
 WHERE messages.id = found.id;
