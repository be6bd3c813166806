"""Run one apply or undo in this process and end it by SIGKILL at a named place; started by tests only.

Arguments: home, `apply` or `undo`, the place as `module.function:call:before|after`, and for an apply `purge` or ``.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermes_dbtools import apply_plan, undo
from hermes_dbtools.apply import ApplyOptions
from hermes_dbtools.home import Home, resolve
from hermes_dbtools.model import Step
from hermes_dbtools.undoing import UndoOptions, choose_receipt
from tests.repairs import NOW, plan_of, purge_of


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wrap(place: str) -> None:
    """Make the nth call of a function of ours the last thing this process does."""
    name, call, when = place.split(":")
    module_name, _, function_name = name.rpartition(".")
    module = importlib.import_module(f"hermes_dbtools.{module_name}")
    real: Callable[..., Any] = getattr(module, function_name)
    calls = 0

    def wrapped(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == int(call) and when == "before":
            die()
        answer = real(*arguments, **named)
        if calls == int(call):
            die()
        return answer

    setattr(module, function_name, wrapped)


def on_step(number: int) -> Callable[[Step], None]:
    """Die when this step is about to run."""
    seen = 0

    def step(_step: Step) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            die()

    return step


def main(home: Home, operation: str, place: str, answer: str) -> None:
    options = ApplyOptions(now=NOW)
    plan = None
    if operation == "apply":
        choose = {"dangling-image-references": "relink"}
        plan = purge_of(home) if answer == "purge" else plan_of(home, choose=choose)
    if place.startswith("step:"):
        options = ApplyOptions(now=NOW, on_step=on_step(int(place.removeprefix("step:"))))
    else:
        wrap(place)
    if plan is not None:
        apply_plan(home, plan, options)
    else:
        undo(home, choose_receipt(home, None), UndoOptions(now=NOW))
    sys.exit("the place was never reached")


if __name__ == "__main__":
    main(resolve(Path(sys.argv[1])), sys.argv[2], sys.argv[3], sys.argv[4])
