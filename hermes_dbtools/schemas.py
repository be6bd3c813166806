"""The published JSON Schemas of the documents; opens nothing and builds no document.

Within a `format_version` fields may be added, none is renamed or removed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .backups.documents import BackupDocument, BackupsDocument, Manifest, RestoreDocument
from .baseline import BaselineDocument
from .comparing.model import CompareDocument
from .explain.document import Explanation
from .merging import MergedDocument
from .plan_documents import PlanDocument
from .receipt_document import HistoryDocument, ReceiptDocument
from .report_document import ReportDocument
from .salvage.facts import SalvageDocument
from .sessions.published import DeletionDocument, ExportDocument, SessionDocument, SessionsDocument
from .space_model import SpaceDocument

TYPES: dict[str, type[msgspec.Struct]] = {
    "report": ReportDocument,
    "plan": PlanDocument,
    "receipt": ReceiptDocument,
    "history": HistoryDocument,
    "baseline": BaselineDocument,
    "merged-report": MergedDocument,
    "explain": Explanation,
    "salvage": SalvageDocument,
    "compare": CompareDocument,
    "space": SpaceDocument,
    "backup": BackupDocument,
    "backups": BackupsDocument,
    "manifest": Manifest,
    "restore": RestoreDocument,
    "sessions": SessionsDocument,
    "session": SessionDocument,
    "deletion": DeletionDocument,
    "export": ExportDocument,
}
"""The documents by the last word of their `format`."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"hermes-dbtools/{name}",
        **msgspec.json.schema(TYPES[name]),
    }
