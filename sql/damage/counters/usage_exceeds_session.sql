-- What a session used against the sum of its parts by model and route.

-- name: find
-- One row per session whose parts of the main loop exceed it although each of its own counters is above 0: session, its six
-- counters, the six sums. Values that are no numbers count as 0 in a sum and keep a session from being judged.
WITH parts AS (
  SELECT u.session_id,
         total(CASE WHEN typeof(u.api_call_count) = 'integer' THEN u.api_call_count END) AS calls,
         total(CASE WHEN typeof(u.input_tokens) = 'integer' THEN u.input_tokens END) AS input,
         total(CASE WHEN typeof(u.output_tokens) = 'integer' THEN u.output_tokens END) AS output,
         total(CASE WHEN typeof(u.cache_read_tokens) = 'integer' THEN u.cache_read_tokens END) AS cache_read,
         total(CASE WHEN typeof(u.cache_write_tokens) = 'integer' THEN u.cache_write_tokens END) AS cache_write,
         total(CASE WHEN typeof(u.reasoning_tokens) = 'integer' THEN u.reasoning_tokens END) AS reasoning
    FROM session_model_usage AS u
   WHERE u.task = ''
   GROUP BY u.session_id
)
SELECT CAST(s.id AS BLOB), s.api_call_count, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens,
       s.reasoning_tokens, p.calls, p.input, p.output, p.cache_read, p.cache_write, p.reasoning
  FROM parts AS p
 INNER JOIN sessions AS s ON s.id = p.session_id
 WHERE typeof(s.api_call_count) = 'integer' AND s.api_call_count > 0
   AND typeof(s.input_tokens) = 'integer' AND s.input_tokens > 0
   AND typeof(s.output_tokens) = 'integer' AND s.output_tokens > 0
   AND typeof(s.cache_read_tokens) = 'integer' AND s.cache_read_tokens > 0
   AND typeof(s.cache_write_tokens) = 'integer' AND s.cache_write_tokens > 0
   AND typeof(s.reasoning_tokens) = 'integer' AND s.reasoning_tokens > 0
   AND (p.calls > s.api_call_count OR p.input > s.input_tokens OR p.output > s.output_tokens
        OR p.cache_read > s.cache_read_tokens OR p.cache_write > s.cache_write_tokens
        OR p.reasoning > s.reasoning_tokens)
 ORDER BY s.id;
