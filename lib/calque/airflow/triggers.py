"""Triggers of Airflow, which wait without a worker: they ask again and again until the answer is no `NOT_YET`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, assert_never

import httpx
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from calque.airflow.hook import CalqueHook
from calque.airflow.local import Local
from calque.airflow.polling import polled
from calque.airflow.questions import Answer, AnswerState, DoneQuestion, Question, WaitQuestion
from calque.airflow.server import Server
from calque.errors import CalqueError

POLL_SECONDS = 10.0
"""Seconds between two questions, where none are given."""


class CalqueDoneTrigger(BaseTrigger):  # type: ignore[misc]
    """A trigger that fires when the set is done at `target`, or at the source where None is given."""

    def __init__(
        self,
        *,
        calque_conn_id: str,
        table: str,
        partition: Mapping[str, str],
        target: str | None = None,
        poll_interval: float = POLL_SECONDS,
    ) -> None:
        super().__init__()
        self.calque_conn_id, self.poll_interval = calque_conn_id, poll_interval
        self.question = DoneQuestion(table, dict(partition), target)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the trigger as Airflow keeps it: the name of its class, and its arguments, without the token."""
        question = self.question
        arguments = {"table": question.table, "partition": dict(question.partition), "target": question.target}
        return "calque.airflow.triggers.CalqueDoneTrigger", arguments | shared(self)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield await fired(self, self.question)


class CalqueWaitTrigger(BaseTrigger):  # type: ignore[misc]
    """A trigger that fires when the target shows the event."""

    def __init__(self, *, calque_conn_id: str, target: str, event_id: int, poll_interval: float = POLL_SECONDS) -> None:
        super().__init__()
        self.calque_conn_id, self.poll_interval = calque_conn_id, poll_interval
        self.question = WaitQuestion(target, event_id)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the trigger as Airflow keeps it: the name of its class, and its arguments, without the token."""
        arguments = {"target": self.question.target, "event_id": self.question.event_id}
        return "calque.airflow.triggers.CalqueWaitTrigger", arguments | shared(self)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield await fired(self, self.question)


Trigger = CalqueDoneTrigger | CalqueWaitTrigger


def shared(trigger: Trigger) -> dict[str, Any]:
    return {"calque_conn_id": trigger.calque_conn_id, "poll_interval": trigger.poll_interval}


async def fired(trigger: Trigger, question: Question) -> TriggerEvent:
    """Return the event of the trigger, once there is an answer that is no `NOT_YET`."""
    try:
        # Airflow reads connections by calls that block.
        place = await sync_to_async(CalqueHook(trigger.calque_conn_id).place)()
        answer = await answered(trigger, place, question)
    except CalqueError as error:
        answer = Answer(AnswerState.REFUSED, str(error), {})
    return TriggerEvent(answer.values())


async def answered(trigger: Trigger, place: Server | Local, question: Question) -> Answer:
    def note(reason: str) -> None:
        trigger.log.info("not yet: %s", reason)

    async def poll(ask: Callable[[], Awaitable[Answer]]) -> Answer:
        return await polled(ask, trigger.poll_interval, note)

    match place:
        case Server():
            context = await asyncio.to_thread(place.context)
            async with httpx.AsyncClient(verify=context if context is not None else True) as client:
                return await poll(lambda: place.ask_by(client, question, httpx.HTTPError))
        case Local():
            return await poll(lambda: asyncio.to_thread(place.ask, question))
    assert_never(place)
