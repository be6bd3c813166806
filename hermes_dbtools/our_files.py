"""How the files are called that this tool writes beside a database; reads and writes none.

`<home>/dbtools/<receipt id>/` is the folder of a repair, `<home>/dbtools/backups/` that of backups; a restore works beside the
database, under its name with one of `RESTORES` behind it.
"""

from __future__ import annotations

import re

RECEIPT = "receipt.json"
PLAN = "plan.json"
SCRATCH_SUFFIX = ".new"
RECEIPT_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}(?:-\d+)?")

BACKUPS = "backups"
UNFINISHED_BACKUP = "unfinished"

RESTORE_NEW = ".restore-new"
RESTORE_OLD = ".restore-old"
RESTORE_STEP = ".restore-step"
RESTORE_FIRST = ".restore-first"
RESTORES = (RESTORE_NEW, RESTORE_OLD, RESTORE_STEP, RESTORE_FIRST)
