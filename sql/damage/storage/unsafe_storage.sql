-- Nothing of this class is asked of SQLite by the tool. For an operator with the sqlite3 shell.

-- name: journal-mode
-- One row: `wal` or the kind of rollback journal.
SELECT journal_mode FROM pragma_journal_mode;
