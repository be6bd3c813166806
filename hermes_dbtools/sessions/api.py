"""Delete sessions for whoever embeds this tool, with the answers that the store's own surfaces give; decides nothing itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..home import Home, resolve
from ..model import Deletion
from .deleting import DeleteOptions, SessionActive, delete_all, refuse_left

__all__ = ["Deletion", "SessionActive", "delete_sessions"]


def delete_sessions(
    session_ids: str | Iterable[str],
    home: Home | str | os.PathLike[str] | None = None,
    *,
    whole_chain: bool = False,
    backup: bool = False,
    now: float | None = None,
) -> Deletion:
    """Delete sessions with all that the store's own delete takes along, and say what was left alone.

    `session_ids` are whole ids; `home` is a Hermes home or a `state.db`, by default the default home; `whole_chain` takes
    every session of the same compression chain; `backup` copies and verifies the file first; `now` is epoch seconds.

    One id: raises SessionActive (`exit_code` 1, `http_status` 409, `rpc_code` 4023) when it is live, Refused when it may
    not be deleted. Several: those are in `skipped_active` and `skipped`, and the others are deleted. An id without a row is
    in `missing` and no error. Raises RolledBack where a transaction changed nothing, CouldNotLook for an unreadable file.
    """
    ids = (session_ids,) if isinstance(session_ids, str) else tuple(dict.fromkeys(session_ids))
    where = home if isinstance(home, Home) else resolve(None if home is None else Path(home))
    deletion = delete_all(where, ids, DeleteOptions(whole_chain, backup, now))
    if len(ids) == 1:
        refuse_left(deletion)
    return deletion
