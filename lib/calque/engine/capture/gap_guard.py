"""A guard for a journal that answers no reader once a gap was found, because its answers may belong to another history
of the log."""

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
    """Return the source for readers that know all gaps found by now. When a further gap is found, calls of their
    journal raise `Unavailable` from then on."""
    if source.gaps is None:
        return source
    interceptor = GapInterceptor(source.gaps, newest(source.gaps))
    return replace(source, journal=ForwardingJournal(source.journal, interceptor))


@dataclass(frozen=True, slots=True)
class GapInterceptor:
    """An interceptor of a journal's calls that lets it answer as long as there are `number` gaps, and raises
    `Unavailable` after that. A gap is recorded before the journal begins anew, so an answer is good if there is no
    further gap after it came."""

    gaps: Gaps
    number: int

    def __call__(self, _method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        try:
            return call(*arguments, **named)
        finally:
            if newest(self.gaps) != self.number:
                raise Unavailable("A gap in the log was found", "The journal begins anew behind it", "Begin anew")
