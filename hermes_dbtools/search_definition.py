"""Read what the store's full-text indexes are made of from their own CREATE texts; never opens an index of a file.

Column names, the table or view that holds the text, the tokenizer, the triggers that feed an index and the
marks of `state_meta` those triggers obey are all taken from the file, because releases differ in every one
of them. A trigger that does not keep the index right when it is tried counts as none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import known
from .search_feeding import Fed, misled
from .shape import Shape, Table, Trigger

TEXT_COLUMNS = ("content", "tool_name", "tool_calls")
"""The columns of `messages` that every known index is made from."""

_ASKED = frozenset({"sessions", "messages", "state_meta"})
"""The tables that triggers and views of search read."""

_EVENT = re.compile(r"\b(DELETE|INSERT|UPDATE)\b", re.IGNORECASE)
_BEGIN = re.compile(r"\bBEGIN\b", re.IGNORECASE)
_HIGH_WATER = re.compile(r"'(\w*rebuild_high_water)'")
_HEAD = re.compile(r"\bsubstr\s*\(.*?,\s*1\s*,\s*(\d+)\s*\)", re.IGNORECASE | re.DOTALL)
_HEAD_MARK = re.compile(r"'(\w*full_content_high_water)'")
_CLOSING = {"'": "'", '"': '"', "`": "`", "[": "]"}


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """One FTS5 index of `messages`, as its CREATE text and its triggers define it.

    `content` is the table or view that holds its text, '' where the index keeps its own copy (inline).
    `tokenizer` is the tokenizer's name, `tokenizer_arguments` what follows it. `head_limit` is the number
    of characters that the triggers keep of a tool's answer, None for all; where `head_mark` names a key of
    `state_meta`, only above its value. `gap_marks` are the keys (high water, progress) between which rows
    wait for a refill. `unknown` says why entries of this index cannot be kept right, or is ''. `wrong_triggers`
    feed it wrongly: their events are among the missing ones.
    """

    name: str
    columns: tuple[str, ...]
    content: str
    tokenizer: str
    create_sql: str
    triggers: tuple[tuple[str, str], ...]
    content_rowid: str = "id"
    tokenizer_arguments: tuple[str, ...] = ()
    gap_marks: tuple[str, str] = ("", "")
    head_limit: int | None = None
    head_mark: str = ""
    missing_triggers: tuple[str, ...] = ()
    wrong_triggers: tuple[tuple[str, str], ...] = ()
    unknown: str = ""

    @property
    def inline(self) -> bool:
        """Whether the index keeps its own copy of the text."""
        return not self.content

    @property
    def reads_view(self) -> bool:
        """Whether its text is read from a view: a message may then belong in or out by its session."""
        return self.content not in ("", "messages")

    @property
    def stale_mark(self) -> str:
        """The key of `state_meta` by which upstream says that it will refill this index."""
        return "fts_cjk_stale" if self.name.endswith("_cjk") else "fts_stale"

    @property
    def joined(self) -> bool:
        """Whether the one text of an inline index is made of several columns of the message."""
        return any("tool_name" in sql for _, sql in self.triggers)

    @property
    def trigram(self) -> bool:
        """Whether its tokens depend on the engine where a text holds a NUL byte."""
        return self.tokenizer == "trigram"


def definitions(shape: Shape) -> tuple[SearchIndex, ...]:
    """Every FTS5 index that belongs to `messages`, in name order."""
    found = []
    for name, table in sorted(shape.tables.items()):
        if table.kind != "virtual" or not re.search(r"\bUSING\s+fts5\b", table.sql, re.IGNORECASE):
            continue
        triggers = [trigger for trigger in shape.triggers.values() if _feeds(trigger, name)]
        if triggers or name in known.SEARCH_TABLES:
            found.append(_definition(shape, table, triggers))
    return tuple(found)


def watched_columns(shape: Shape) -> dict[str, frozenset[str]]:
    """Which columns of `messages` and `sessions` decide what an index holds; a key is absent where none
    does.

    A change of one of these columns makes an entry wrong. Where `sessions` is a key, so does a session row
    that appears or goes: its messages belong to `temp.touched_messages` too.
    """
    words: set[str] = set()
    for index in definitions(shape):
        source = shape.tables.get(index.content)
        texts = [sql for _, sql in index.triggers]
        if source is not None and source.kind == "view":
            texts.append(source.sql)
        words.update(word.lower() for text in texts for word in re.findall(r"\w+", text))
        words.update(column.lower() for column in index.columns)
    watched: dict[str, frozenset[str]] = {}
    for name in ("messages", "sessions"):
        table = shape.tables[name]
        if name in words or name == "messages":
            named = frozenset(column for column in table.columns if column.lower() in words)
            watched[name] = named - {"id"}
    return {name: columns for name, columns in watched.items() if columns}


def _definition(shape: Shape, table: Table, triggers: list[Trigger]) -> SearchIndex:
    columns: list[str] = []
    options: dict[str, str] = {}
    for argument in _split(_arguments(table.sql), ","):
        key, equals, value = _partition(argument)
        if equals:
            options[_bare(key).lower()] = value
        elif argument.strip():
            columns.append(next(_words(argument)))
    content = _bare(options["content"]) if "content" in options else None
    tokenizer = tuple(_words(_bare(options["tokenize"]))) if "tokenize" in options else ()
    triggers, wrong = _told_apart(shape, table, triggers, inline=content is None)
    events = {event(trigger.name, trigger.sql): trigger for trigger in triggers}
    insert = events["INSERT"].sql if "INSERT" in events else ""
    view = content in shape.tables and shape.tables[str(content)].kind == "view"
    head, mark, high = _HEAD.search(insert), _HEAD_MARK.search(insert), _HIGH_WATER.search(insert)
    return SearchIndex(
        name=table.name,
        columns=tuple(columns),
        content=content or "",
        tokenizer=(tokenizer or ("unicode61",))[0],
        create_sql=table.sql,
        triggers=tuple(sorted((trigger.name, trigger.sql) for trigger in triggers)),
        content_rowid=_bare(options.get("content_rowid", "rowid")),
        tokenizer_arguments=tokenizer[1:],
        gap_marks=(high[1], high[1].replace("high_water", "progress")) if high else ("", ""),
        head_limit=int(head[1]) if head and not view else None,
        head_mark=mark[1] if mark else "",
        missing_triggers=tuple(sorted({"INSERT", "DELETE", "UPDATE"} - set(events))),
        wrong_triggers=tuple(sorted((trigger.name, trigger.sql) for trigger in wrong)),
        unknown=_unknown(shape, table.name, columns, content),
    )


def _told_apart(
    shape: Shape, table: Table, triggers: list[Trigger], *, inline: bool
) -> tuple[list[Trigger], list[Trigger]]:
    """The triggers that keep the index right, and those that do not."""
    ordinary = [one for one in shape.tables.values() if one.kind in ("table", "view")]
    fed = Fed(
        name=table.name,
        inline=inline,
        create_sql=table.sql,
        triggers=tuple((trigger.name, trigger.sql) for trigger in triggers),
        tables=tuple(one.sql for one in ordinary if one.kind == "table" and one.name in _ASKED),
        views=tuple(one.sql for one in ordinary if one.kind == "view"),
    )
    of_event = {trigger.name: event(trigger.name, trigger.sql) for trigger in triggers}
    found = misled(fed, tuple(sorted(set(of_event.values()))))
    right = [trigger for trigger in triggers if of_event[trigger.name] not in found]
    return right, [trigger for trigger in triggers if trigger not in right]


def _unknown(shape: Shape, name: str, columns: list[str], content: str | None) -> str:
    """Why entries of this index cannot be kept right, or ''."""
    if f"{name}_docsize" not in shape.tables:
        return "it does not record the sizes of its rows"
    if content is None:
        return "" if columns == ["content"] else "an inline index of other columns than content"
    if not content:
        return "it holds no text and names no table that does"
    if content not in shape.tables:
        return f"its text is read from {content}, which the file lacks"
    if not set(columns) <= set(TEXT_COLUMNS):
        return "it has columns that no known release indexes"
    return ""


def _feeds(trigger: Trigger, index: str) -> bool:
    begin = _BEGIN.search(trigger.sql)
    if trigger.table.lower() != "messages" or begin is None:
        return False
    target = rf"\b(?:INTO|DELETE\s+FROM|UPDATE)\s+[\"'`\[]?{re.escape(index)}[\"'`\]]?(?!\w)"
    return re.search(target, trigger.sql[begin.end() :], re.IGNORECASE) is not None


def event(name: str, sql: str) -> str:
    """DELETE, INSERT or UPDATE: what fires a trigger of this name and text, or ''."""
    found = _EVENT.search(sql.replace(name, "", 1))
    return found[1].upper() if found else ""


def _arguments(sql: str) -> str:
    start = re.search(r"\bUSING\s+fts5\s*\(", sql, re.IGNORECASE)
    return sql[start.end() : sql.rindex(")")] if start and ")" in sql else ""


def _partition(argument: str) -> tuple[str, str, str]:
    parts = _split(argument, "=")
    return (parts[0].strip(), "=", "=".join(parts[1:]).strip()) if len(parts) > 1 else (argument, "", "")


def _split(text: str, separator: str) -> list[str]:
    """Cut at separators that stand outside quotes."""
    parts, closing = [""], ""
    for character in text:
        if closing:
            closing = "" if character == closing else closing
        elif character in _CLOSING:
            closing = _CLOSING[character]
        elif character == separator:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _words(text: str) -> Iterator[str]:
    """The words of a tokenizer's or a column's text, without their quotes."""
    for word in re.findall(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|[^\s'"`\[]+""", text):
        yield _bare(word)


def _bare(word: str) -> str:
    """A word without its quotes; doubled quotes inside become one, as SQLite reads them."""
    word = word.strip()
    closing = _CLOSING.get(word[:1])
    if closing is None or len(word) < 2 or word[-1] != closing:
        return word
    return word[1:-1] if closing == "]" else word[1:-1].replace(closing * 2, closing)
