-- Leases and locks that nobody holds any more. Whether a holder is gone is asked of the processes of this host.

-- name: leases
-- needs: session_turn_leases.conversation_id session_turn_leases.holder session_turn_leases.acquired_at session_turn_leases.expires_at
-- One row per turn lease: conversation (the first session of its chain), how that is stored, holder, when taken, when it ends (NULL
-- where that is no number), whether the session has a row.
SELECT CAST(l.conversation_id AS BLOB), typeof(l.conversation_id), CAST(l.holder AS BLOB),
       CASE WHEN typeof(l.acquired_at) IN ('integer', 'real') THEN l.acquired_at END,
       CASE WHEN typeof(l.expires_at) IN ('integer', 'real') THEN l.expires_at END,
       EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = l.conversation_id)
  FROM session_turn_leases AS l NOT INDEXED
 WHERE l.conversation_id IS NOT NULL
 ORDER BY l.conversation_id;

-- name: locks
-- needs: compression_locks.session_id compression_locks.holder compression_locks.acquired_at compression_locks.expires_at
-- The same for locks of a compression, which name the session itself.
SELECT CAST(l.session_id AS BLOB), typeof(l.session_id), CAST(l.holder AS BLOB),
       CASE WHEN typeof(l.acquired_at) IN ('integer', 'real') THEN l.acquired_at END,
       CASE WHEN typeof(l.expires_at) IN ('integer', 'real') THEN l.expires_at END,
       EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = l.session_id)
  FROM compression_locks AS l NOT INDEXED
 WHERE l.session_id IS NOT NULL
 ORDER BY l.session_id;

-- name: drop-lease
-- One turn lease, unless it was renewed since.
DELETE FROM session_turn_leases
 WHERE conversation_id IN (CAST(:id AS TEXT), :id)
   AND expires_at IS :expires_at;

-- name: drop-lock
-- One lock of a compression, unless it was renewed since.
DELETE FROM compression_locks
 WHERE session_id IN (CAST(:id AS TEXT), :id)
   AND expires_at IS :expires_at;
