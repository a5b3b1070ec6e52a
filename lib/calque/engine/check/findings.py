"""What a check finds: what is wrong, why that matters, and how to mend it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from calque.core.defects import ObjectDefect, traceback_of
from calque.errors import CalqueError, Unavailable
from calque.model.names import TableName

LOG = logging.getLogger(__name__)
SHOWN = 5
"""Names that one finding gives; the others are counted."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` is "source", "target NAME", "cluster NAME", "clusters", "state", "journal", "notices NAME" or
    "configuration"; of several sources it is "source NAME" and "journal NAME"."""

    what: str
    why: str
    todo: str
    severity: Severity
    where: str


@dataclass(slots=True)
class Findings:
    """`unreachable`: something did not answer, and may do so later."""

    entries: list[Finding] = field(default_factory=list)
    unreachable: bool = False

    @property
    def ok(self) -> bool:
        return not self.unreachable and all(finding.severity is not Severity.ERROR for finding in self.entries)

    def add(self, where: str, severity: Severity, what: str, why: str = "", todo: str = "") -> None:
        self.entries.append(Finding(what, why, todo, severity, where))

    def add_all(self, others: Findings, source: str) -> None:
        """What was found of a source and of all that follows it; `source` is said of "source" and "journal"."""
        self.unreachable = self.unreachable or others.unreachable
        for one in others.entries:
            where = f"{one.where}{source}" if one.where in ("source", "journal") else one.where
            self.entries.append(replace(one, where=where))

    def refused(self, where: str, error: CalqueError) -> None:
        """An error as a finding."""
        self.unreachable = self.unreachable or isinstance(error, Unavailable)
        self.add(where, Severity.ERROR, error.what, error.why, error.todo)

    def defective(self, where: str, error: ObjectDefect) -> None:
        """Something could not be looked at, for a defect of calque: all else was."""
        self.unreachable = True
        LOG.error("%s", error, exc_info=traceback_of(error))
        self.add(where, Severity.ERROR, str(error), "The log has its traceback", "Report it; all else was looked at")


def listed(names: Iterable[TableName]) -> str:
    """Some names, and how many more there are."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
