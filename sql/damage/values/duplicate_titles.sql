-- Titles that are not unique or blank. utf8_broken(X) is the tool's own function (hermes_dbtools/utf8.py). The characters in
-- char(…) are those that the store removes from a title, or takes for a space.

-- name: find-equal
-- One row per session whose title a newer session has too: the newest session with that title, and row and id of this one.
WITH equal AS (
  SELECT s.rowid AS place, s.id,
         first_value(s.id) OVER titles AS newest, first_value(s.rowid) OVER titles AS newest_place
    FROM sessions AS s
   WHERE s.title IN (SELECT o.title FROM sessions AS o GROUP BY o.title HAVING count(*) > 1)
     AND trim(s.title, char(9, 10, 11, 12, 13, 32, 133, 160, 8203, 8204, 8205, 8206, 8207, 8232, 8233, 65279)) <> ''
     AND NOT utf8_broken(CAST(s.title AS BLOB))
  WINDOW titles AS (PARTITION BY s.title ORDER BY s.rowid DESC)
)
SELECT CAST(e.newest AS BLOB), e.place, CAST(e.id AS BLOB)
  FROM equal AS e
 WHERE e.place <> e.newest_place
 ORDER BY e.newest, e.place;

-- name: find-blank
-- One row per session whose title is blank: row, session.
SELECT s.rowid, CAST(s.id AS BLOB)
  FROM sessions AS s
 WHERE typeof(s.title) = 'text'
   AND trim(s.title, char(9, 10, 11, 12, 13, 32, 133, 160, 8203, 8204, 8205, 8206, 8207, 8232, 8233, 65279)) = ''
   AND octet_length(s.title) = octet_length(format('%s', s.title))
 ORDER BY s.id;

-- name: untitle
-- Takes the title from the named sessions that a newer one shares it with.
UPDATE sessions
   SET title = NULL
 WHERE rowid IN (SELECT j.value FROM json_each(CAST(:rows AS TEXT)) AS j)
   AND EXISTS (SELECT 1 FROM sessions AS newer
                WHERE newer.title = sessions.title AND newer.rowid > sessions.rowid);

-- name: clear-blank
-- Takes the blank title from one session.
UPDATE sessions
   SET title = NULL
 WHERE rowid = :row
   AND typeof(title) = 'text'
   AND trim(title, char(9, 10, 11, 12, 13, 32, 133, 160, 8203, 8204, 8205, 8206, 8207, 8232, 8233, 65279)) = '';
