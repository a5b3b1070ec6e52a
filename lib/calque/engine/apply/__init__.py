"""Hops, one at a time: stage the files, make the call, remember what the target shows now.

Every call sets the marks of what it writes in the same call. A call that finds the target otherwise than the plan
expected raises `Conflict`; the caller observes and plans again.
"""

from calque.engine.apply.applier import Applier
from calque.engine.apply.context import AppliedChanges, DefinitionSource

__all__ = ["AppliedChanges", "Applier", "DefinitionSource"]
