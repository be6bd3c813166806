"""Diagnose and repair the state.db of a Hermes agent.

The functions below are the public Python API; everything else may change between releases. Errors are `model.ToolError` and
its subclasses. Each function is imported when it is first asked for: `--help` needs none of them. No module may bear the
name of such a function, for importing it would put the module in the function's place.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .apply import apply_plan
    from .fixtures.api import make_fixture
    from .plan import make_plan
    from .scanning import scan
    from .sessions.api import Deletion, SessionActive, delete_sessions
    from .undoing import undo

__version__ = "0.1.0"

__all__ = [
    "Deletion",
    "SessionActive",
    "__version__",
    "apply_plan",
    "delete_sessions",
    "make_fixture",
    "make_plan",
    "scan",
    "undo",
]

_PLACES = {
    "Deletion": ".sessions.api",
    "SessionActive": ".sessions.api",
    "apply_plan": ".apply",
    "delete_sessions": ".sessions.api",
    "make_fixture": ".fixtures.api",
    "make_plan": ".plan",
    "scan": ".scanning",
    "undo": ".undoing",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
