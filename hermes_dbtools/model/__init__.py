"""The frozen values that pass between the parts of the tool; holds no behaviour that reads or writes anything.

Units: sizes are bytes, moments are epoch seconds, durations are seconds.
"""

from __future__ import annotations

from .errors import Active, BecameLive, CouldNotLook, Refused, RolledBack, StalePlan, ToolError, UsageError
from .findings import (
    SELECTED,
    TO_SALVAGE,
    Accepted,
    BaselineEntry,
    BaselineUse,
    DatabaseReport,
    Finding,
    Holder,
    LiveSession,
    Report,
    Result,
    SearchIndexState,
    ShapeSummary,
)
from .plans import Deletion, Plan, Receipt, ReceiptStatus, SchemaChange, Skipped, SkippedActive
from .steps import FileCopy, FileTrash, Remedy, SearchWork, Statement, Step
from .values import Extent, Safety, Severity, Status, Value

__all__ = [
    "SELECTED",
    "TO_SALVAGE",
    "Accepted",
    "Active",
    "BaselineEntry",
    "BaselineUse",
    "BecameLive",
    "CouldNotLook",
    "DatabaseReport",
    "Deletion",
    "Extent",
    "FileCopy",
    "FileTrash",
    "Finding",
    "Holder",
    "LiveSession",
    "Plan",
    "Receipt",
    "ReceiptStatus",
    "Refused",
    "Remedy",
    "Report",
    "Result",
    "RolledBack",
    "Safety",
    "SchemaChange",
    "SearchIndexState",
    "SearchWork",
    "Severity",
    "ShapeSummary",
    "Skipped",
    "SkippedActive",
    "StalePlan",
    "Statement",
    "Status",
    "Step",
    "ToolError",
    "UsageError",
    "Value",
]
