-- When the file was last used: read by hermes_dbtools/damage/lineage/_activity.py. An activity is a start, an end, a message or a heartbeat of
-- work, and not after :now.

-- name: newest
-- needs: sessions.last_activity_at
-- The newest activity in the file.
SELECT max(a.moment)
  FROM (SELECT max(s.started_at) AS moment FROM sessions AS s WHERE s.started_at <= :now
        UNION ALL
        SELECT max(s.ended_at) FROM sessions AS s WHERE s.ended_at <= :now
        UNION ALL
        SELECT max(s.last_activity_at) FROM sessions AS s WHERE s.last_activity_at <= :now
        UNION ALL
        SELECT max(m.timestamp)
          FROM (SELECT n.timestamp FROM messages AS n ORDER BY n.id DESC LIMIT 100) AS m
         WHERE m.timestamp <= :now) AS a;

-- name: newest
-- The same where sessions keep no time of activity.
SELECT max(a.moment)
  FROM (SELECT max(s.started_at) AS moment FROM sessions AS s WHERE s.started_at <= :now
        UNION ALL
        SELECT max(s.ended_at) FROM sessions AS s WHERE s.ended_at <= :now
        UNION ALL
        SELECT max(m.timestamp)
          FROM (SELECT n.timestamp FROM messages AS n ORDER BY n.id DESC LIMIT 100) AS m
         WHERE m.timestamp <= :now) AS a;
