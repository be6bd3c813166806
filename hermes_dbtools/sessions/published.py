"""The documents of the session commands as published, typed; holds no behaviour and opens nothing.

Within a `format_version` fields may be added, none is renamed or removed. Times are epoch seconds, sizes are bytes.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..model import ReceiptStatus, Skipped
from ..receipt_document import ReceiptDocument
from ..report_document import LiveSessionDocument, Severity

Id = str | int | float | dict[str, Any]
"""An id as the column holds it; what is no UTF-8 is `{"hex": …}`."""


class ListedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session of the list.

    `reason` says why it is live, or how it was closed; `hidden` why upstream's lists do not show it, or ''; `shown_as` is the
    session under which they show it. `expires_at` is None where the reason has no end.
    """

    id: Id | None
    source: str
    kind: Literal["root", "branch", "delegate", "continuation", "reset", "child"]
    parent: Id | None
    title: str
    started_at: float | None
    ended_at: float | None
    messages: int
    state: Literal["live", "open", "closed", "archived"]
    reason: str
    holder: str
    expires_at: float | None
    hidden: str
    shown_as: Id | None


class SessionsDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sessions that were asked for, newest first; `total` is how many there are without a limit."""

    format: Literal["hermes-dbtools/sessions"]
    format_version: Literal[1]
    total: int
    sessions: list[ListedDocument]


class MemberDocument(ListedDocument, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One session of a family: how deep it stands, by which markers, and whether the line comes back to one above it."""

    depth: int
    markers: dict[str, str]
    loop: bool


class TableShareDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a table names a session in this column; `bytes` are those of the values."""

    table: str
    column: str
    rows: int
    bytes: int


class SettingDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stored value of a session."""

    key: str
    bytes: int


class ImageDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that a session names: in which form, whether it is there, how often it is named."""

    path: str
    form: str
    state: str
    times: int


class AppliedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A receipt whose plan changed the session."""

    id: str
    status: ReceiptStatus
    created_at: float


class AboutDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding about the session."""

    code: str
    slug: str
    severity: Severity
    key: str
    message: str
    evidence: dict[str, Any]
    next: str


class SessionDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about one session; `could_not_scan` says why its findings are not known, or ''."""

    format: Literal["hermes-dbtools/session"]
    format_version: Literal[1]
    session: ListedDocument
    lineage: list[MemberDocument]
    tables: list[TableShareDocument]
    settings: list[SettingDocument]
    images: list[ImageDocument]
    receipts: list[AppliedDocument]
    findings: list[AboutDocument]
    could_not_scan: str


class DeletionDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a delete of sessions did, each list in the order asked.

    `deleted` were asked for, `also_deleted` went with them; `skipped_active` are live, `skipped` may not be deleted, `missing`
    have no row. `receipts` take it back, the last one first.
    """

    format: Literal["hermes-dbtools/deletion"]
    format_version: Literal[1]
    deleted: list[str]
    also_deleted: list[str]
    skipped_active: list[LiveSessionDocument]
    skipped: list[Skipped]
    missing: list[str]
    receipts: list[ReceiptDocument]
    exit_code: int


class ExportedSessionDocument(msgspec.Struct, frozen=True):
    """One session of an export: the columns of its row by their names, and its messages with theirs, as that release has them.

    Texts that are no UTF-8 are `{"hex": …}`; content and tool calls are JSON where the store keeps JSON.
    """

    id: Id
    messages: list[dict[str, Any]]
    model_usage: list[dict[str, Any]] = []
    daily_usage: list[dict[str, Any]] = []


class ExportDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sessions with their messages, the oldest first. A line of jsonl is one of these sessions."""

    format: Literal["hermes-dbtools/export"]
    format_version: Literal[1]
    sessions: list[ExportedSessionDocument]
