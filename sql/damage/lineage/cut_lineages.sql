-- Sessions whose title says that they are the second or a later part of something they no longer hang under.

-- name: find
-- One row per such session: id, its number, how many sessions have the same title without a number or with another one, and
-- one of them that is close before it. Titles are compared and never given out.
WITH numbered AS MATERIALIZED (
  SELECT s.id, rtrim(s.title, '0123456789') AS head, substr(s.title, length(rtrim(s.title, '0123456789')) + 1) AS tail
    FROM sessions AS s
   WHERE typeof(s.id) = 'text' AND typeof(s.title) = 'text' AND s.title GLOB '?* #[0-9]*'
     AND s.parent_session_id IS NULL
     AND CASE WHEN typeof(s.model_config) = 'text' AND json_valid(s.model_config)
              THEN json_extract(s.model_config, '$._branched_from') IS NULL ELSE 1 END
), parts AS MATERIALIZED (
  SELECT n.id, substr(n.head, 1, length(n.head) - 2) AS base, CAST(n.tail AS INTEGER) AS number
    FROM numbered AS n
   WHERE substr(n.head, -2) = ' #' AND length(n.head) > 2
     AND length(n.tail) BETWEEN 1 AND 9 AND n.tail NOT GLOB '0*' AND CAST(n.tail AS INTEGER) > 1
), kin AS MATERIALIZED (
  SELECT p.id, p.number, k.id AS other, 1 AS place
    FROM parts AS p
   INNER JOIN sessions AS k ON k.title = p.base
   WHERE k.id <> p.id
   UNION ALL
  SELECT p.id, p.number, k.id, CAST(substr(k.title, length(p.base) + 3) AS INTEGER)
    FROM parts AS p
   INNER JOIN sessions AS k ON k.title > p.base || ' #' AND k.title < p.base || ' $'
   WHERE k.id <> p.id
     AND length(substr(k.title, length(p.base) + 3)) BETWEEN 1 AND 9
     AND substr(k.title, length(p.base) + 3) NOT GLOB '*[^0-9]*'
)
SELECT CAST(k.id AS BLOB), k.number, count(*),
       (SELECT CAST(o.other AS BLOB)
          FROM kin AS o
         WHERE o.id = k.id
         ORDER BY o.place > k.number, abs(o.place - k.number), o.other
         LIMIT 1)
  FROM kin AS k
 GROUP BY k.id
 ORDER BY k.id;
