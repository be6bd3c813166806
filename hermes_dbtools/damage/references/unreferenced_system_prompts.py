"""Stored prompts are used by no session.

What it means
-------------
`system_prompts` keeps each prompt, and each list of tool names, once. These rows are named neither by
`system_prompt_hash` nor by `tool_names` of any session: nothing reads them, and they take room.

Why it happens
--------------
The store removes a prompt with the last session that uses it. A delete by a script or another user interface
does not, nor does a recovery that lost session rows. Public reports tell of files in which repeated prompts took
much of the room before they were kept once.

Repair
------
`drop` removes the prompt.

Safety
------
A prompt that either column names is never touched. Dropping loses the text for good but for undo, so it is
planned only with `--allow-lossy`, and refused while `sessions` is empty: then the sessions were lost, and their
prompts are part of what is left of them. Prompts are not printed; hashes are, and a key that is no hash is shown
by a digest.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Finding, Remedy, Safety, Severity, Statement
from ...sizes import size_text
from .._declare import ScanContext, declare, whole
from ._adoption import identity
from ._hashes import named_hash

NO_SESSIONS = "sessions is empty: its rows were lost, and these prompts are part of what is left of them"


def _find(context: ScanContext) -> Iterator[Finding]:
    refused: str | None = None
    asked = False
    for value, storage, size in DAMAGE.rows(context, "find"):
        if not asked:
            ((any_session,),) = DAMAGE.rows(context, "any-session")
            refused, asked = (None if any_session else NO_SESSIONS), True
        prompt, weight = identity(value, storage), whole(size)
        key = named_hash(prompt)
        step = DAMAGE.step(
            key=key,
            answer="drop",
            title=f"drop the unused prompt {key[:12]}: {size_text(weight)}",
            statements=(Statement("drop", {"hash": prompt}, 1, "system_prompts", "delete"),),
            session_ids=(),
            bytes_freed=weight,
        )
        yield DAMAGE.finding(
            table="system_prompts",
            key=key,
            message=f"a prompt of {size_text(weight)} that no session uses",
            evidence={"bytes": weight},
            remedies=(
                Remedy("drop", Safety.LOSSY, None if refused else step, refused),
                Remedy("report", Safety.EXACT),
            ),
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB209",
    severity=Severity.WARNING,
    safety=Safety.LOSSY,
    answers=("drop", "report"),
    needs=("system_prompts.hash", "sessions.system_prompt_hash"),
    reads=("sessions", "system_prompts"),
    noun=("unused prompt", "unused prompts"),
    sums=(("bytes", "bytes"),),
    extent="session",
    find=_find,
)
