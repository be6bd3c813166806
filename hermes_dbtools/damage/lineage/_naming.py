"""Find which sessions' calls of `delegate_task` name other sessions; keeps ids, never what was said.

An id counts where it stands as a word of its own in the arguments of such a call or in the tool's answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from ...model import Value
from ...tool_calls import read_calls
from .._declare import Damage, ScanContext, text

_WORD = re.compile(rb"[\w.:@+-]+")
_AROUND = b".:-"


def named_by(damage: Damage, context: ScanContext, ids: Collection[str]) -> dict[str, set[Value]]:
    """For each of the ids the other sessions whose calls name it. `damage` is a class with a block `delegating`."""
    wanted = {session_id.encode("utf-8", "surrogatepass"): session_id for session_id in ids}
    marked = context.sweep.run(context).marked.get("delegating", ())
    found: dict[str, set[Value]] = {}
    if not wanted or not marked:
        return found
    for session, calls, answer in damage.rows(context, "delegating", {"ids": json.dumps(list(marked))}):
        for said in (*_arguments(calls), answer):
            if not isinstance(said, bytes):
                continue
            for word in _words(said):
                if word in wanted and word != session:
                    found.setdefault(wanted[word], set()).add(text(session))
    return found


def _arguments(calls: Value) -> Iterator[bytes]:
    """The arguments of the calls that delegate a task."""
    read = read_calls(calls) if isinstance(calls, bytes) else None
    for call in read.calls if read else ():
        if call.name == "delegate_task" and call.function is not None:
            arguments = call.function.arguments
            told = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
            yield told.encode("utf-8", "surrogatepass")


def _words(said: bytes) -> Iterator[bytes]:
    for match in _WORD.finditer(said):
        word = match.group()
        yield word
        if word.strip(_AROUND) != word:
            yield word.strip(_AROUND)
