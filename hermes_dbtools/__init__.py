"""Diagnose and repair the state.db of a Hermes agent.

The functions below are the public Python API; everything else may change between releases. Errors are `model.ToolError` and
its subclasses.
"""

__version__ = "0.1.0"

from .apply import apply_plan as apply_plan
from .plan import make_plan as make_plan
from .scan import scan as scan
from .undo import undo as undo
