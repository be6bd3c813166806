"""A search index uses a tokenizer that this SQLite does not have

What it means
-------------
Messages can be read, and every check of the file says it is well; but each statement that writes, changes or
deletes a message fails, because the triggers of the index cannot run. No repair of messages is planned for
such a file.

Why it happens
--------------
The store made the index with a tokenizer of its own (a `cjk` extension, say) or with a newer SQLite, and the
engine at work now lacks it: another Python, another machine, a container without the extension.

Repair
------
By hand: work with an engine that has the tokenizer, or take the index away and let Hermes make it
again. The index is made from messages, so nothing is lost with it.

Safety
------
Manual. The answer comes from the engine's own list of tokenizers; the index is not opened. A file without a
trigram index is a poorer search, not damage; nor is an index that its store detached, since no trigger writes it
then.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import Finding, Safety, Severity
from ...search_index import read_indexes, unavailable_tokenizers
from .._declare import ScanContext, declare


def _find(context: ScanContext) -> Iterable[Finding]:
    fed = {index.name for index in read_indexes(context.connection, context.shape) if index.triggers}
    for index, tokenizer in unavailable_tokenizers(context.connection, context.shape):
        if index not in fed:
            continue  # no trigger writes it, so messages can be written: it waits for its own engine (HDB804)
        yield DAMAGE.finding(
            table=index,
            key=index,
            message=f"the engine has no tokenizer {tokenizer!r}: messages can be read, but not one can be "
            "written, changed or deleted",
            evidence={"index": index, "tokenizer": tokenizer},
        )


DAMAGE = declare(
    __name__,
    __doc__,
    code="HDB805",
    severity=Severity.ERROR,
    safety=Safety.MANUAL,
    noun=("index", "indexes"),
    find=_find,
)
