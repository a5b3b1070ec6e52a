"""The questions that tasks of Airflow ask, and what the answers mean, whether a process gave them over HTTP or the
state folder did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from calque.errors import Refused

OF_THE_REQUEST = ("table", "target")
"""Parameters of `/done` that are no keys of partitions."""
TRY_AGAIN = (408, 429)
"""Refusals of HTTP, as of a proxy, that pass."""


class AnswerState(StrEnum):
    """The outcome of a question. `REFUSED` is an answer that another try does not change."""

    YES = "yes"
    NOT_YET = "not_yet"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its outcome, the reason of one that is no yes, and the document that was given, empty for none."""

    state: AnswerState
    reason: str
    document: Mapping[str, Any]

    def values(self) -> dict[str, Any]:
        """Return the answer as values of JSON, as an event of Airflow carries it."""
        return {"state": self.state.value, "reason": self.reason, "document": dict(self.document)}


def answer_from(values: Mapping[str, Any]) -> Answer:
    """Return the answer of `Answer.values`."""
    return Answer(AnswerState(values["state"]), str(values["reason"]), values["document"])


@dataclass(frozen=True, slots=True)
class DoneQuestion:
    """The question whether a set of partitions is done: at `target`, or at the source where None is given."""

    table: str
    partition: Mapping[str, str]
    target: str | None = None

    @property
    def path(self) -> str:
        return "/done"

    def parameters(self) -> dict[str, str]:
        """Return the parameters of the request. Raises `Refused` for a key that a request can't say."""
        for key in self.partition:
            if key in OF_THE_REQUEST:
                why = f"A request over HTTP calls the {key} of the question so"
                raise Refused(f'A key of the partition is called "{key}"', why, "Use SetDoneSensor, with config=")
        target = {"target": self.target} if self.target is not None else {}
        return {"table": self.table, **target, **{key: str(value) for key, value in self.partition.items()}}


@dataclass(frozen=True, slots=True)
class WaitQuestion:
    """The question whether a target shows an event. It is answered at once: who waits asks again."""

    target: str
    event_id: int

    @property
    def path(self) -> str:
        return "/wait"

    def parameters(self) -> dict[str, str]:
        return {"target": self.target, "event_id": str(self.event_id), "timeout": "0"}


@dataclass(frozen=True, slots=True)
class StatusQuestion:
    """The question for the document of `calque status`."""

    @property
    def path(self) -> str:
        return "/status"

    def parameters(self) -> dict[str, str]:
        return {}


Question = DoneQuestion | WaitQuestion | StatusQuestion


def event_number(text: object) -> int:
    """Return the event id that the text, as a template gives it, says. Raises `Refused` where it says none."""
    try:
        number = int(str(text))
    except ValueError:
        number = -1
    if number < 0:
        raise Refused(f'"{text}" is no event id', "Event ids are numbers from 0 on", "Give one, or a template")
    return number


def answer_of(status: int, document: Mapping[str, Any]) -> Answer:
    """Return what a status of HTTP and a document mean.

    Where the table of a set was dropped after the mark (409), the set may still be marked again, so that it is awaited
    as `calque done wait` awaits it. A 404 that is no verdict comes from a process that has no such page.
    """
    reason = str(document.get("reason") or document.get("error") or f"The answer is {status}.")
    if status == 200:
        return Answer(AnswerState.YES, "", document)
    is_verdict = status in (404, 409) and "done" in document
    if is_verdict or status in TRY_AGAIN or status >= 500:
        return Answer(AnswerState.NOT_YET, reason, document)
    return Answer(AnswerState.REFUSED, reason, document)


def head_of(status: Mapping[str, Any], target: str) -> int:
    """Return the newest event of the target's source, of the document of `calque status`. Raises `Refused` for a target
    that is not there, and where the source does not tell its newest event."""
    targets = status.get("targets", {})
    if target not in targets:
        known = ", ".join(sorted(targets)) or "none"
        raise Refused(f'There is no target "{target}"', f"The targets are: {known}", "Name one of them")
    source = targets[target].get("source")
    heads = [one["source"]["head"] for one in status["sources"] if one["source"]["name"] == source]
    if not heads or heads[0] is None:
        raise Refused(
            f"The newest event of {source} is not known", "It does not answer now", "Try again, or give event_id"
        )
    return int(heads[0])
