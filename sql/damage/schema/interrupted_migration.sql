-- What an upgrade leaves that stopped half-way. {table} and {leftover} are tables of the file.

-- name: rows
-- How many rows the table has.
SELECT count(*) FROM {table};

-- name: bytes
-- How many bytes the pages of a table take; the module reads the pages of that table alone.
SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = :name;

-- name: usage-only-there
-- needs: session_model_usage.billing_mode
-- How many rows of {leftover}, the old table of usage, have no row of the same session, model and route in the new one.
SELECT count(*)
  FROM {leftover} AS old
 WHERE NOT EXISTS (SELECT 1 FROM session_model_usage AS new
                    WHERE new.session_id = old.session_id AND new.model = old.model
                      AND new.billing_provider = old.billing_provider AND new.billing_base_url = old.billing_base_url
                      AND new.billing_mode = old.billing_mode);

-- name: bindings-only-there
-- needs: telegram_dm_topic_bindings.thread_id
-- How many rows of {leftover}, the table in the making, have no row of the same topic in the table itself.
SELECT count(*)
  FROM {leftover} AS made
 WHERE NOT EXISTS (SELECT 1 FROM telegram_dm_topic_bindings AS old
                    WHERE old.chat_id = made.chat_id AND old.thread_id = made.thread_id);

-- name: prompts
-- needs: sessions.system_prompt sessions.system_prompt_hash system_prompts
-- One row: sessions with their prompt in the row and no hash, sessions with a hash, and the bytes of those prompts.
SELECT count(*) FILTER (WHERE s.system_prompt IS NOT NULL AND s.system_prompt_hash IS NULL),
       count(s.system_prompt_hash),
       coalesce(sum(octet_length(s.system_prompt)) FILTER (WHERE s.system_prompt_hash IS NULL), 0)
  FROM sessions AS s NOT INDEXED;
