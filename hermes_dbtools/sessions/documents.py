"""Deletes of sessions as JSON documents; computes nothing."""

from __future__ import annotations

import msgspec

from .. import documents, plan_documents
from ..model import Deletion
from ..plan import totals
from .looking import Look


def plan_document(seen: Look) -> bytes:
    """What a delete would do, as a plan document."""
    return documents.encode(plan_documents.plan_document(seen.plan, totals(seen.plan), seen.planners))


def deletion_document(done: Deletion) -> bytes:
    """What a delete did."""
    return documents.encode(
        {
            "format": "hermes-dbtools/deletion",
            "format_version": documents.FORMAT_VERSION,
            "deleted": list(done.deleted),
            "also_deleted": list(done.also_deleted),
            "skipped_active": [documents.plain(msgspec.structs.asdict(one)) for one in done.skipped_active],
            "skipped": [msgspec.structs.asdict(one) for one in done.skipped],
            "missing": list(done.missing),
            "receipts": [documents.receipt_document(receipt) for receipt in done.receipts],
            "exit_code": done.exit_code,
        }
    )
