"""Expected failures, each with the exit code that it leads to; computes nothing."""

from __future__ import annotations

from typing import ClassVar


class ToolError(Exception):
    """An expected failure: its text is the one line an operator reads; `exit_code` is what the process returns."""

    exit_code: ClassVar[int] = 4


class UsageError(ToolError):
    """A bad argument, plan file or name."""

    exit_code: ClassVar[int] = 2


class CouldNotLook(ToolError):
    """The file, or one check of it, could not be looked at; says nothing about whether it is damaged."""

    exit_code: ClassVar[int] = 3


class Refused(ToolError):
    """A repair or undo that was not begun."""


class RolledBack(ToolError):
    """A repair or undo that was begun and left no row changed."""


class BecameLive(RolledBack):
    """A session of the plan is live now and was not when the plan was made."""


class StalePlan(RolledBack):
    """The planned findings are no longer what the plan was made for."""


class Active(ToolError):
    """Everything that was asked for belongs to live sessions."""

    exit_code: ClassVar[int] = 1
