"""How bash, zsh and fish hand over a line and take what fits, where click's own way loses words; offers nothing itself.

bash splits words at `=` and `:` (`$COMP_WORDBREAKS`), and replaces only what stands behind the last of them. zsh and fish replace
the whole word, so what fits behind `--option=` must begin with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

VARIABLE = "_HERMES_DBTOOLS_COMPLETE"
"""Where a shell says that it asks."""

BREAKS = "=:"


class _WholeWords(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What fits, each item as the whole word that it makes of the one that was begun."""
        option, given, _value = incomplete.partition("=")
        before = option + given if given and option.startswith("--") else ""
        items = super().get_completions(args, incomplete)
        return [_changed(item, before + item.value.removeprefix(before)) for item in items]


class Bash(_WholeWords, BashComplete):
    """bash, which is asked for one word and gives its pieces."""

    before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and that one, as they were typed."""
        words, place = split_arg_string(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"])
        if place >= len(words):
            return joined(words[1:])[0], ""
        whole, self.before = joined(words[1 : place + 1])
        return whole[:-1], whole[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What fits, without what bash leaves as it is."""
        items = super().get_completions(args, incomplete)
        return [_changed(item, item.value.removeprefix(self.before)) for item in items]


class Zsh(_WholeWords, ZshComplete):
    """zsh."""


class Fish(_WholeWords, FishComplete):
    """fish."""


def prepare() -> None:
    """Let click answer so, where a shell asks."""
    if VARIABLE in os.environ:
        for shell in (Bash, Zsh, Fish):
            add_completion_class(shell)


def joined(pieces: Iterable[str]) -> tuple[list[str], str]:
    """The words of which bash made these pieces, and how the last word begins before its last piece."""
    words: list[str] = []
    before, at_break = "", False
    for piece in pieces:
        breaks = piece != "" and piece.strip(BREAKS) == ""
        if words and (breaks or at_break):
            before = words[-1] + (piece if breaks else "")
            words[-1] += piece
        else:
            before = ""
            words.append(piece)
        at_break = breaks
    return words, before


def _changed(item: CompletionItem, value: str) -> CompletionItem:
    return CompletionItem(value, item.type, item.help) if item.type == "plain" else item
