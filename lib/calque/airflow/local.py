"""calque's own functions over a configuration on the worker, for tasks of Airflow that ask no process.

They need calque with its dependencies, the configuration and its state folder, and run as the user of calque. Here
alone the provider imports the rest of calque.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, assert_never

from calque.airflow.questions import (
    Answer,
    AnswerState,
    DoneQuestion,
    Question,
    StatusQuestion,
    WaitQuestion,
    answer_of,
)
from calque.errors import CalqueError, Refused, Unavailable

if TYPE_CHECKING:
    from calque.wiring.wiring import Wiring

MOST_ROWS = 100
"""The number of differences, and of objects that were not compared, that a result of Airflow gets."""


@dataclass(frozen=True, slots=True)
class Local:
    """The deployment whose configuration is the file `config` of this host."""

    config: str

    def ask(self, question: Question) -> Answer:
        """Return the answer that a running process would give."""
        try:
            return answer_of(*found(self.wiring(), question))
        except Refused as refused:
            return Answer(AnswerState.REFUSED, str(refused), {})
        except CalqueError as error:
            return Answer(AnswerState.NOT_YET, str(error), {})

    def pause(self, target: str, tables: Sequence[str]) -> None:
        """Pause the target, or its tables that match the patterns. Raises `Refused` for an unknown target."""
        from calque.control.actions import OperatorAction

        self.act(OperatorAction.PAUSE.value, target, tables)

    def resume(self, target: str, tables: Sequence[str]) -> None:
        """Let the target, or its tables that match the patterns, go on. Raises `Refused` for an unknown target."""
        from calque.control.actions import OperatorAction

        self.act(OperatorAction.RESUME.value, target, tables)

    def act(self, action: str, target: str, tables: Sequence[str]) -> None:
        from calque.control.actions import action_of, do, require_possible

        wiring = self.wiring()
        require_possible(wiring, target, tables)
        do(wiring, action_of(action), target, tables, ())

    def verify(self, target: str, tables: Sequence[str], data: str) -> dict[str, Any]:
        """Compare the target with its source, and return what was found: the document of `calque verify`, with at most
        `MOST_ROWS` rows in each list, and their numbers in `difference_count` and `set_aside_count`."""
        from calque.app import APP
        from calque.control.actions import require_possible
        from calque.control.verification import document, verification

        wiring = self.wiring()
        require_possible(wiring, target, tables)
        compared = verification(wiring, target, tables, data, lambda _done, _all: None, APP.comparisons())
        whole = document(wiring, compared)
        return {
            **whole,
            "compared": asdict(compared.compared),
            "differences": whole["differences"][:MOST_ROWS],
            "difference_count": len(whole["differences"]),
            "set_aside": whole["set_aside"][:MOST_ROWS],
            "set_aside_count": len(whole["set_aside"]),
        }

    def wiring(self) -> Wiring:
        from calque.app import APP

        return APP.wiring(APP.load(self.config))


def found(wiring: Wiring, question: Question) -> tuple[int, Mapping[str, Any]]:
    """Return the status and the document with which a running process answers the question over HTTP."""
    match question:
        case DoneQuestion():
            from calque.plugins.marks.questions import done_over_http

            return done_over_http(wiring, question.parameters())
        case WaitQuestion():
            from calque.control.waiting import EventWait

            wait = EventWait(wiring, question.target, question.event_id)
            waited = wait.look()
            if not waited.has_reached:
                raise Unavailable(str(wait.late(waited, 0)))
            return 200, {"target": question.target, "event_id": question.event_id, "position": waited.position}
        case StatusQuestion():
            from calque.control.status import snapshot

            return 200, snapshot(wiring)
    assert_never(question)
