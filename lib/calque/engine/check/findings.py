"""The findings of a check: what is wrong, why that matters, and how to mend it."""

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
"""The number of names that one finding gives at most; the others are counted."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `where` is "source", "target NAME", "cluster NAME", "clusters", "state", "journal", "notices NAME",
    "host" or "configuration"; with several sources it is "source NAME" and "journal NAME"."""

    what: str
    why: str
    todo: str
    severity: Severity
    where: str
    expected: bool = False
    """Whether it is as it should be, or so in every deployment. No document has it."""

    def document(self) -> dict[str, str]:
        texts = {"what": self.what, "why": self.why, "todo": self.todo}
        return {**texts, "severity": self.severity.value, "where": self.where}


@dataclass(slots=True)
class Findings:
    """The findings of one check. `unreachable`: a part of the world did not answer, and may do so later."""

    entries: list[Finding] = field(default_factory=list)
    unreachable: bool = False

    @property
    def ok(self) -> bool:
        return not self.unreachable and all(finding.severity is not Severity.ERROR for finding in self.entries)

    def add(self, where: str, severity: Severity, what: str, why: str = "", todo: str = "") -> None:
        self.entries.append(Finding(what, why, todo, severity, where))

    def add_expected(self, where: str, what: str, why: str = "", todo: str = "") -> None:
        """Add a fact that is as it should be, or so in every deployment. The output for people leaves it out."""
        self.entries.append(Finding(what, why, todo, Severity.INFO, where, expected=True))

    def add_all(self, others: Findings, source: str) -> None:
        """Add the findings of one of several sources and of its targets. Findings at "source" and "journal" get the
        text `source` behind these words (" hq"), so that readers can tell the sources apart."""
        self.unreachable = self.unreachable or others.unreachable
        for one in others.entries:
            where = f"{one.where}{source}" if one.where in ("source", "journal") else one.where
            self.entries.append(replace(one, where=where))

    def refused(self, where: str, error: CalqueError) -> None:
        """Add an error as a finding."""
        self.unreachable = self.unreachable or isinstance(error, Unavailable)
        self.add(where, Severity.ERROR, error.what, error.why, error.todo)

    def defective(self, where: str, error: ObjectDefect) -> None:
        """Add a finding for a look that a defect of calque ended; the other looks went on."""
        self.unreachable = True
        LOG.error("%s", error, exc_info=traceback_of(error))
        self.add(where, Severity.ERROR, str(error), "The log has its traceback", "Report it; all else was looked at")


def listed(names: Iterable[TableName]) -> str:
    """Return the first names as a text, with the number of the others."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
