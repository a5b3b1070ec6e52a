"""The check whether a target takes the changes of columns that the source takes."""

from __future__ import annotations

from calque.engine.check.findings import Findings
from calque.engine.check.sides import Source, Target
from calque.errors import Unavailable
from calque.ports.services import COLUMN_CHANGES, forbids_column_changes


def check_column_changes(source: Source, target: Target, findings: Findings) -> None:
    """Compare the settings by which the two metastores refuse changes of a column to another type, and report a
    difference; calque's own connections may set it otherwise. Raises `Unavailable` for the target. A source that does
    not answer is left to other looks."""
    if not takes_changes(source) or forbids_column_changes(target.server) is False:
        return
    what = f"{COLUMN_CHANGES} is false at the source, and not here"
    findings.add_expected(target.where, what, "calque's own connections set it where a change needs it")


def takes_changes(source: Source) -> bool:
    try:
        return source.server is not None and forbids_column_changes(source.server) is False
    except Unavailable:
        return False
