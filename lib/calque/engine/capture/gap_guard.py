"""A journal that answers nothing once a gap was found: what it says then may belong to another history of the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from calque.engine.sides.journal_reads import newest
from calque.engine.sides.sides import SourceSide
from calque.errors import Unavailable
from calque.ports import Gaps
from calque.ports.forwarding import ForwardingJournal

P = ParamSpec("P")
R = TypeVar("R")


def fenced(source: SourceSide) -> SourceSide:
    """The source for readers who know all gaps that were found by now: with the next one their journal is
    `Unavailable`, and stays so."""
    if source.gaps is None:
        return source
    known_gaps = KnownGaps(source.gaps, newest(source.gaps))
    return replace(source, journal=ForwardingJournal(source.journal, known_gaps))


@dataclass(frozen=True, slots=True)
class KnownGaps:
    """Lets a journal answer as long as there are `number` gaps. A gap is recorded before the journal begins anew, so an
    answer is good when there is no other one after it came."""

    gaps: Gaps
    number: int

    def __call__(self, _method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        try:
            return call(*arguments, **named)
        finally:
            if newest(self.gaps) != self.number:
                raise Unavailable("A gap in the log was found", "The journal begins anew behind it", "Begin anew")
