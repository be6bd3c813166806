"""Find by which text each touched entry of an index came in; changes nothing but temp tables.

An entry leaves an index of external content only by the very text it came in with; another one corrupts the
index. The source gives that text, but not always: the engine that wrote the entry may have stopped at a NUL
byte, the session that a view asks for may be gone, and the length to which answers of tools are cut may
have changed. Each such entry is checked against the number of tokens that FTS5 keeps of it. What stays
unexplained makes the caller rebuild the index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import apsw

from .search_definition import SearchIndex
from .search_rule import Count, Rule, rule_of, token_counter, unpacked
from .search_sql import filled, names, rows, run

SAMPLED_ROWS = 50_000
"""How many of the newest rows are looked through for one that tells the rule; all of them would cost a read
of the file."""

KnownRule = Literal["stops", "whole", ""]
"""How a text with a NUL byte is indexed; '' where no row told."""

FORMS = ("source", "source stopped", "messages", "messages stopped", "cut", "whole")
"""The texts an entry may have come in by. `source`: what the index's table or view gives; `messages`: the
columns of the message, where the view leaves it out; `cut`, `whole`: an answer of a tool, against what the
mark says; `stopped`: up to the first NUL byte."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the touched entries of one index told. `doubt` says why some cannot be taken out one by one, or
    ''."""

    rule: KnownRule = ""
    stopped: bool = False
    doubt: str = ""


def list_entries(connection: apsw.Connection, index: SearchIndex) -> None:
    """Fill temp.search_entries with the touched entries of an index."""
    run(connection, "forget_entries", {"index": index.name})
    run(connection, "find_entries", {"index": index.name}, names(index))


def find(connection: apsw.Connection, index: SearchIndex, head_mark: int) -> Evidence:
    """Tell the form of each touched entry that `list_entries` found."""
    if not index.inline and run(connection, "strays", {"index": index.name})[0][0]:
        return Evidence(doubt="an entry has no message")
    count = token_counter(connection, index)
    rules = _rules(connection, index, count)
    forms = {id_: "source stopped" for id_, rule in rules.items() if rule == "stops"}
    told: list[Any] = [rule for _, rule in sorted(rules.items()) if rule in ("stops", "whole")]
    evidence = Evidence(told[-1] if told else "", "stops" in told)
    if "neither" in rules.values() or (index.inline and len(set(told)) > 1):
        return Evidence(evidence.rule, doubt="entries of different engines")
    if not index.inline:
        absent = _absent(connection, index, count) if index.reads_view else {}
        long = _long(connection, index, count, head_mark) if index.head_limit is not None else {}
        if "" in absent.values() or "" in long.values():
            return Evidence(evidence.rule, doubt="an entry of unknown text")
        forms |= absent | long
    _set_forms(connection, index, forms)
    return evidence


def find_left(connection: apsw.Connection, index: SearchIndex) -> bool:
    """Fill temp.search_entries with the entries that a change of sessions took out of the index's view.

    False when the text of one is unknown.
    """
    run(connection, "forget_entries", {"index": index.name})
    run(connection, "find_left", {"index": index.name}, names(index))
    forms = _absent(connection, index, token_counter(connection, index))
    _set_forms(connection, index, forms)
    return "" not in forms.values()


def _set_forms(connection: apsw.Connection, index: SearchIndex, forms: dict[int, str]) -> None:
    bindings = [{"index": index.name, "id": id_, "form": form} for id_, form in sorted(forms.items())]
    connection.executemany(filled("set_form", {}), bindings)


def rule_of_new_rows(connection: apsw.Connection, index: SearchIndex) -> KnownRule:
    """How the newest rows with a NUL byte came into a trigram index; '' where none was found."""
    count = token_counter(connection, index)
    block = "nul_sample_inline" if index.inline else "nul_sample_external"
    for _, sizes, *texts in run(connection, block, {"rows": SAMPLED_ROWS, "sample": 20}, names(index)):
        rule = rule_of(count, sizes, texts)
        if rule == "stops" or rule == "whole":
            return rule
    return ""


def _rules(connection: apsw.Connection, index: SearchIndex, count: Count) -> dict[int, Rule]:
    """The rule of each touched entry with a NUL byte; only trigram indexes have one."""
    if not index.trigram:
        return {}
    block = "nul_entries_inline" if index.inline else "nul_entries_external"
    found = rows(connection, block, {"index": index.name}, names(index))
    return {id_: rule_of(count, sizes, texts) for id_, sizes, *texts in found}


def _absent(connection: apsw.Connection, index: SearchIndex, count: Count) -> dict[int, str]:
    """The form of each entry that the index's view leaves out today, '' where its message does not explain
    it."""
    forms: dict[Rule, str] = {"stops": "messages stopped", "neither": ""}
    found = rows(connection, "absent_entries", {"index": index.name}, names(index))
    return {id_: forms.get(rule_of(count, sizes, texts), "messages") for id_, sizes, *texts in found}


def _long(connection: apsw.Connection, index: SearchIndex, count: Count, head_mark: int) -> dict[int, str]:
    """The form of each long answer of a tool that did not come in as the mark says today, '' where it is
    unknown.

    The mark below which answers came in whole moves. What the triggers would do now stands where the number
    of tokens allows it. A whole text has at least the tokens of its head, so fewer fit neither.
    """
    column = index.columns.index("content")
    bindings = {"index": index.name, "mark": head_mark, "limit": index.head_limit}
    forms: dict[int, str] = {}
    for id_, sizes, cuts, head in rows(connection, "long_entries", bindings, names(index)):
        tokens, least = unpacked(sizes)[column], count(head)
        if tokens < least:
            forms[id_] = ""
        elif cuts and tokens > least:
            forms[id_] = "whole"
        elif not cuts and tokens == least and _whole(connection, id_, count) > least:
            forms[id_] = "cut"
    return forms


def _whole(connection: apsw.Connection, id_: int, count: Count) -> int:
    return count(run(connection, "whole_content", {"id": id_})[0][0])
