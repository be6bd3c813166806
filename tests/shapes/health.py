"""Say what a fixture file gets wrong by its own rows; never uses the queries of the product under test."""

from __future__ import annotations

from pathlib import Path

from tests.shapes.make import columns, execute

# a session whose counters are not the count of its live messages and of the calls in them
DRIFTED = """
    SELECT s.id
    FROM sessions AS s
    LEFT JOIN messages AS m ON m.session_id = s.id AND {live}
    GROUP BY s.id
    HAVING s.message_count <> COUNT(m.id)
        OR s.tool_call_count <> COALESCE(SUM(json_array_length(m.tool_calls)), 0)
    ORDER BY s.id
"""

# a call that no tool answered in its session
UNANSWERED = """
    SELECT a.session_id, c.value ->> 'id' AS id
    FROM messages AS a, json_each(a.tool_calls) AS c
    WHERE a.tool_calls IS NOT NULL
    EXCEPT
    SELECT t.session_id, t.tool_call_id
    FROM messages AS t
    WHERE t.role = 'tool'
    ORDER BY 1, 2
"""


def drifted(path: Path) -> list[str]:
    """The sessions whose message or tool call counter is wrong."""
    live = "m.active = 1" if "active" in columns(path)["messages"] else "1"
    return [row[0] for row in execute(path, DRIFTED.format(live=live))]


def unanswered(path: Path) -> list[tuple[str, str]]:
    """Session and id of each tool call without an answer."""
    return [(row[0], row[1]) for row in execute(path, UNANSWERED)]
