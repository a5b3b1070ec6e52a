"""The outcome of a demo, and the exit code that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calque.demo.invitation import Invitation
from calque.demo.progress import EpochTotals
from calque.errors import Broken, Unavailable


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a command: its exit code, its JSON document, and the text of its error, empty without one."""

    code: int
    document: Mapping[str, Any]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """The outcome at one target. `waited` and `verified` are the answers of `calque wait` and `calque verify`."""

    position: int | None
    work: EpochTotals
    waited: Answer
    verified: Answer

    @property
    def code(self) -> int:
        """The exit code for this target: 0 only when every object that the target takes was compared and is equal."""
        for answer in (self.verified, self.waited):
            if answer.code > 1:
                return answer.code
        if self.verified.document.get("differences") or self.verified.code:
            return 1
        return Unavailable.exit_code if self.verified.document.get("set_aside") else 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the whole demo. `changes` counts the changes that the writer made in `seconds` seconds, by their
    kind; `head` is the source's last event. `kept` is the folder with the demo's files, None where it goes.
    `invitation` is None where the demo does not stay."""

    changes: Mapping[str, int]
    seconds: float
    head: int
    targets: Mapping[str, TargetOutcome]
    kept: Path | None = None
    invitation: Invitation | None = None

    @property
    def code(self) -> int:
        codes = {target.code for target in self.targets.values()}
        failures = codes - {0, 1}
        return (Broken.exit_code if Broken.exit_code in failures else min(failures)) if failures else max(codes)

    def with_rest(self, kept: Path | None, invitation: Invitation | None = None) -> Outcome:
        """Return the outcome with what follows from its code: the folder that is kept, and the invitation."""
        return replace(self, kept=kept, invitation=invitation)
