-- Triggers that cannot run. What they lack is asked of the engine, in memory (hermes_dbtools/damage/schema/_stand_in.py): it says
-- so when a statement that fires them is prepared.

-- name: stand-in
-- An ordinary table in the place of a virtual one, in memory: the same columns, hidden ones too.
CREATE TABLE {table} ({columns});

-- name: fire-insert
-- Prepared and never run: compiles the triggers of an INSERT.
INSERT INTO {table} DEFAULT VALUES;

-- name: fire-delete
-- Prepared and never run: compiles the triggers of a DELETE.
DELETE FROM {table};

-- name: fire-update
-- Prepared and never run: compiles the triggers of an UPDATE of one column.
UPDATE {table} SET {column} = {column};

-- name: drop
-- Takes the trigger away; its text is kept with the receipt.
DROP TRIGGER {trigger};
