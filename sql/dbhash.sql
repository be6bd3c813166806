-- Reads whole tables for their digest. {places} are filled with names that the file itself has.

-- name: rows
-- Every row of a table: storage class and value of each column.
SELECT {values} FROM {table} ORDER BY {order};

-- name: rows-of-state-meta
-- The same without this tool's own marks, which a repair adds and an undo keeps.
SELECT {values} FROM {table} WHERE key NOT GLOB 'hermes_dbtools.repair.*' OR key IS NULL ORDER BY {order};
