-- The session that a row belongs to, where no column of the row names it alone.

-- name: state-key
-- The name of one value of the store: some names end with the id of a session.
SELECT CAST(k.key AS BLOB)
  FROM state_meta AS k
 WHERE k.rowid = :row;

-- name: route
-- needs: gateway_routing
-- The session that one route leads to; none where the entry does not parse.
SELECT CAST(json_extract(r.entry_json, '$.session_id') AS BLOB)
  FROM gateway_routing AS r
 WHERE r.rowid = :row
   AND json_valid(r.entry_json);

-- name: receipt
-- needs: worker_receipts worker_executions
-- The session for which the worker of one receipt runs.
SELECT CAST(w.session_id AS BLOB)
  FROM worker_receipts AS r
 INNER JOIN worker_executions AS w ON w.execution_id = r.execution_id
 WHERE r.rowid = :row;
