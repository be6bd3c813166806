-- The values of a store that was made anew: run by hermes_dbtools/salvage/values.py.

-- name: suspects
-- How many rows of a table have a value of a type that the declared type of its column does not keep ({wrong} asks it of
-- each column), and how many have text that is not UTF-8 (all text columns of a row are looked at together).
SELECT coalesce(sum({wrong}), 0), coalesce(sum(utf8_broken(CAST(concat_ws(' ', {texts}) AS BLOB))), 0)
  FROM {table};

-- name: generation
-- The mark from which the store makes the application id of its file.
SELECT CAST(value AS BLOB) FROM state_meta WHERE key = 'db_file_generation';
