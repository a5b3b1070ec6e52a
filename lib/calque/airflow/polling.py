"""The wait of a trigger: it asks at intervals until the answer is one to act on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from calque.airflow.questions import Answer, AnswerState


async def polled(ask: Callable[[], Awaitable[Answer]], interval: float, note: Callable[[str], None]) -> Answer:
    """Return the first answer that is no `NOT_YET`. `interval` is seconds between two questions. `note` is told the
    reason of a `NOT_YET` when it differs from the one before."""
    told = ""
    while (answer := await ask()).state is AnswerState.NOT_YET:
        if answer.reason != told:
            note(answer.reason)
            told = answer.reason
        await asyncio.sleep(interval)
    return answer
