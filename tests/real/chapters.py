"""The chapters of a busy life: sessions made and changed as agents do; nothing here damages a store.

Each chapter takes the book it is written into, uses ids made of the book's prefix and a role, and skips what
the release cannot do. What a release hides without being asked (an unmarked branch whose root was reopened,
say) is in `hidden_branches` alone, which no life holds unless a test asks for it.
"""

from __future__ import annotations

from tests.real.book import Book
from tests.real.wheels import ASYNC_RELEASES

PROMPT = "You are a careful agent."
LONG = "a line of tool output\n" * 600


def old_days(book: Book) -> None:
    """Sessions older than the 90 days of a prune, some with children that are younger than that."""
    book.go_to(200)
    book.chat("pruned", end="cli_close")
    book.chat("pruned-root", title="Old root")
    book.chat("pruned-parent")
    book.call("delegate", parent=book.id("pruned-parent"), child=book.id("pruned-delegate"))
    book.call("end", session_id=book.id("pruned-parent"), end_reason="cli_close")
    book.chat("old-open", source="telegram")
    book.chat("old-archived", title="Kept on the shelf")
    book.go_to(80)
    book.chat("abandoned", title="Long work")
    book.call("compress", session_id=book.id("abandoned"), child=book.id("abandoned-tip"), summary="old work")
    book.go_to(60)
    book.call("branch", parent=book.id("pruned-root"), child=book.id("branch-of-pruned"))
    book.call("delegate", parent=book.id("pruned-parent"), child=book.id("delegate-of-pruned"))
    book.note("finalized", book.call("finalize_compressions"))
    book.forget("pruned", "pruned-root", "pruned-parent", "pruned-delegate")


def tool_work(book: Book) -> None:
    """Tool calls one by one and in pairs, long results, pictures, and a title."""
    book.go_to(30)
    book.chat("tools", title="Tool work", cwd="/srv/project", system_prompt=PROMPT)
    for turn in range(3):
        book.say("tools", f"turn {turn}")
        calls = [f"call_{book.prefix}{turn}_{number}" for number in range(1 + turn % 2)]
        book.call(
            "tool_turn", session_id=book.id("tools"), call_ids=calls, result=LONG if turn == 1 else "done"
        )
        book.say("tools", "there it is", role="assistant")
    book.chat("untitled")
    book.call("tool_turn", session_id=book.id("untitled"), call_ids=[f"call_{book.prefix}u"])
    book.chat("images", system_prompt=PROMPT)
    for picture in range(2):
        book.call("image", session_id=book.id("images"), text=f"picture {picture} of a lighthouse")
        book.say("images", "a lighthouse at night", role="assistant")
    book.call("branch", parent=book.id("images"), child=book.id("branch-of-images"), form=book.live_branch)
    book.chat("prompted", system_prompt="A prompt of one session only.", end="cli_close")
    book.call("delete", session_id=book.id("prompted"))
    book.forget("prompted")


def family(book: Book) -> None:
    """Branches and sub-agents whose root lives, is deleted, or is reopened and ended again."""
    book.go_to(25)
    book.chat("root", title="The root")
    book.call("branch", parent=book.id("root"), child=book.id("branch"))
    book.say("branch", "another way from here")
    book.call("delegate", parent=book.id("branch"), child=book.id("delegate"))
    book.call("delegate", parent=book.id("delegate"), child=book.id("delegate-of-delegate"))
    book.call("delegate", parent=book.id("branch"), child=book.id("delegate-long"), end=False)
    book.call("compress", session_id=book.id("delegate-long"), child=book.id("delegate-long-2"))
    book.call("end", session_id=book.id("delegate-long-2"), end_reason="agent_close")
    book.chat("reopened", end="cli_close")
    book.call("reopen", session_id=book.id("reopened"))
    book.say("reopened", "back again")
    book.call("end", session_id=book.id("reopened"), end_reason="tui_shutdown")
    if book.marks_branches:
        book.chat("rebranched", title="Twice ended")
        book.call("branch", parent=book.id("rebranched"), child=book.id("branch-of-rebranched"))
        book.call("reopen", session_id=book.id("rebranched"))
        book.say("rebranched", "the root goes on")
        book.call("end", session_id=book.id("rebranched"), end_reason="cli_close")
        book.chat("forked")
        book.call("fork", parent=book.id("forked"), child=book.id("fork"))
    book.chat("deleted-root", title="Soon gone")
    book.keep_books("deleted-root", thread="11")
    book.call("delegate", parent=book.id("deleted-root"), child=book.id("delegate-of-deleted"))
    book.call("branch", parent=book.id("deleted-root"), child=book.id("branch-of-deleted"))
    book.call("delete", session_id=book.id("deleted-root"))
    book.forget("deleted-root", *(["delegate-of-deleted"] if book.marks_delegates else []))


def rewrites(book: Book) -> None:
    """Rewinds, restores, replacements and clearings."""
    book.go_to(20)
    book.chat("replaced", turns=3)
    kept = book.call("conversation", session_id=book.id("replaced"))[:3]
    book.call("replace", session_id=book.id("replaced"), messages=kept)
    book.chat("cleared")
    book.call("clear", session_id=book.id("cleared"))
    if not book.can("rewind_to_message"):
        return
    book.chat("rewound", turns=4)
    calls = [f"call_{book.prefix}r1", f"call_{book.prefix}r2"]
    book.call("tool_turn", session_id=book.id("rewound"), call_ids=calls)
    book.call("rewind", session_id=book.id("rewound"), message_id=book.user_row("rewound", 2))
    book.say("rewound", "another try")
    book.call("rewind", session_id=book.id("rewound"), message_id=book.user_row("rewound", 1))
    book.say("rewound", "a third try")
    book.chat("restored", turns=3)
    target = book.user_row("restored", 1)
    book.call("rewind", session_id=book.id("restored"), message_id=target)
    book.call("restore", session_id=book.id("restored"), message_id=target)
    book.chat("rewound-whole", turns=2)
    book.call("rewind", session_id=book.id("rewound-whole"), message_id=book.user_row("rewound-whole", 0))


def compressions(book: Book) -> None:
    """Compressions by rotation (twice, with a goal, a parent deleted) and in place (twice, with rewinds)."""
    book.go_to(15)
    book.chat("rotated", title="A long story", turns=4)
    book.call("goal", session_id=book.id("rotated"))
    book.call("compress", session_id=book.id("rotated"), child=book.id("rotated-2"), summary="the first half")
    book.say("rotated-2", "more of the story")
    book.call("compress", session_id=book.id("rotated-2"), child=book.id("rotated-3"), summary="most of it")
    book.say("rotated-3", "and its end")
    book.chat("lost-parent", turns=3)
    book.call("compress", session_id=book.id("lost-parent"), child=book.id("kept-tip"))
    book.call("delete", session_id=book.id("lost-parent"))
    book.forget("lost-parent")
    if not book.can("archive_and_compact"):
        return
    book.chat("compacted", title="Compacted", turns=4)
    book.call(
        "tool_turn",
        session_id=book.id("compacted"),
        call_ids=[f"call_{book.prefix}c1", f"call_{book.prefix}c2"],
    )
    book.call("compress", session_id=book.id("compacted"), keep=3)
    book.say("compacted", "after the first")
    book.call("compress", session_id=book.id("compacted"), summary="twice")
    book.say("compacted", "after the second")
    book.call("rewind", session_id=book.id("compacted"), message_id=book.user_row("compacted", -1))
    book.say("compacted", "once more")
    book.chat("revived", turns=3)
    first = book.user_row("revived", 0)
    book.call("compress", session_id=book.id("revived"))
    book.call("restore", session_id=book.id("revived"), message_id=first)
    book.chat("rewritten", turns=3)
    book.call("compress", session_id=book.id("rewritten"))
    live = book.call("conversation", session_id=book.id("rewritten"))
    book.call("replace", session_id=book.id("rewritten"), messages=live[:1], active_only=True)
    book.say("rewritten", "a new start")
    if book.release in ASYNC_RELEASES:
        book.chat("dropped", turns=3)
        rows = book.call("conversation", session_id=book.id("dropped"))
        book.call("replace", session_id=book.id("dropped"), messages=rows[:2], archive_dropped=True)


def gateway(book: Book) -> None:
    """Chats of a gateway: routes, topics, resets, hand-offs, locks, leases, usage and what accounts leave."""
    book.go_to(10)
    book.chat("chat", source="telegram", user_id="7")
    book.keep_books("chat", thread="12")
    book.chat("before-reset", source="telegram", end="session_reset")
    book.call("create", session_id=book.id("after-reset"), source="telegram", user_id="7")
    book.keep_books("after-reset", thread="13")
    if book.release in ASYNC_RELEASES:
        key = f"agent:main:telegram:dm:{book.prefix}reset"
        book.chat("reset-root", source="telegram", end="session_reset", session_key=key)
        names = {"parent": book.id("reset-root"), "session_key": key}
        book.call("create", session_id=book.id("reset-child"), source="telegram", **names)
        book.say("reset-child", "a fresh start")
        book.call("reopen", session_id=book.id("reset-root"))
        book.call("end", session_id=book.id("reset-root"), end_reason="session_switch")
    for outcome in ("pending", "completed", "failed"):
        book.chat(f"handoff-{outcome}")
        if book.can("request_handoff"):
            book.call("handoff", session_id=book.id(f"handoff-{outcome}"), outcome=outcome)
    book.chat("cron", source="cron", end="cron_complete")
    book.chat("tool", source="tool", end="agent_close")
    book.chat("measured")
    book.measure("measured", input_tokens=900, output_tokens=100)
    book.measure("measured", input_tokens=50, output_tokens=5)
    book.chat("absolute", source="telegram")
    book.measure("absolute", input_tokens=4000, output_tokens=400, absolute=True)
    book.measure("accounted", input_tokens=1, output_tokens=1)
    if book.can("record_auxiliary_usage"):
        book.call("auxiliary_usage", session_id=book.id("measured"), task="title_generation", input_tokens=20)
        book.call("auxiliary_usage", session_id=book.id("measured"), task="compression", input_tokens=30)
    if book.can("try_acquire_compression_lock"):
        book.call("lock", session_id=book.id("measured"), holder="pid=999999:tid=1:agent=a:nonce=00000000")
    if book.can("try_acquire_session_turn_lease"):
        book.call("lease", session_id=book.id("measured"), holder="pid=999999:turn=t")
    book.chat("archived", end="cli_close", title="On the shelf")
    for role in ("archived", "old-archived"):
        if book.can("set_session_archived"):
            book.call("archive", session_id=book.id(role), archived=True)
    if book.can("set_session_pinned"):
        book.flag("set_session_pinned", "chat", pinned=True)
        book.flag("set_session_hidden", "cron", hidden=True)
        book.flag("set_session_read", "archived", read=True)


def house_keeping(book: Book) -> None:
    """Sweeps, bulk deletes, and an export that is deleted and imported back."""
    book.go_to(5)
    book.call("create", session_id=book.id("ghost"), source="tui")
    book.call("end", session_id=book.id("ghost"), end_reason="tui_shutdown")
    book.go_to(3)
    book.note("ghosts", book.call("prune_ghosts"))
    book.forget("ghost")
    for role in ("bulk-1", "bulk-2"):
        book.chat(role, end="cli_close")
    if book.can("delete_sessions"):
        book.call("delete_many", session_ids=[book.id("bulk-1"), book.id("bulk-2"), "never-was"])
        book.forget("bulk-1", "bulk-2")
    book.call("create", session_id=book.id("empty-ended"))
    book.call("end", session_id=book.id("empty-ended"), end_reason="cli_close")
    if book.can("delete_empty_sessions"):
        book.call("delete_empty")
        book.forget("empty-ended")
    if book.can("import_sessions"):
        import_back(book)
    book.go_to(0)
    book.note("pruned", book.call("prune", older_than_days=90))
    if book.can("optimize_fts"):
        book.call("call", method="optimize_fts")


def import_back(book: Book) -> None:
    """Export three sessions, delete them and what one hangs under, and import them; one finds no parent."""
    book.chat("imported")
    book.call("tool_turn", session_id=book.id("imported"), call_ids=[f"call_{book.prefix}i"])
    book.call("branch", parent=book.id("imported"), child=book.id("imported-branch"))
    book.chat("import-parent")
    book.call("branch", parent=book.id("import-parent"), child=book.id("imported-alone"))
    roles = ("imported", "imported-branch", "imported-alone")
    exports = [book.call("export", session_id=book.id(role)) for role in roles]
    for role in (*roles, "import-parent"):
        book.call("delete", session_id=book.id(role))
    book.forget("import-parent")
    there = exports[0] | {"id": book.id("chat")}
    book.note("import", book.call("import_sessions", sessions=[*exports, there]))


def today(book: Book) -> None:
    """What a running agent has now: an open chat and a session without a message yet."""
    book.go_to(0)
    book.chat("current", title="Today", turns=3)
    book.call("create", session_id=book.id("waiting"), source="cli", cwd="/srv/project")


CHAPTERS = (old_days, tool_work, family, rewrites, compressions, gateway, house_keeping, today)
