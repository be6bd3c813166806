"""Receipts as published, typed; holds no behaviour and knows no database."""

from __future__ import annotations

from typing import Literal

import msgspec

from .model import Receipt


class ReceiptDocument(Receipt, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same as a document."""

    format: Literal["hermes-dbtools/receipt"]
    format_version: Literal[1]


class HistoryDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was applied to a database, oldest first, each with the status that the database proves."""

    format: Literal["hermes-dbtools/history"]
    format_version: Literal[1]
    database: str
    receipts: list[ReceiptDocument]
