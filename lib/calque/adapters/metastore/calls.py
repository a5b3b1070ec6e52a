"""Calls of a metastore, and the meaning of their failures for code that reads and writes its objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from calque.adapters.metastore import messages
from calque.adapters.metastore.client import Client, ConnectionLost
from calque.adapters.metastore.faults import settled
from calque.adapters.metastore.messages import (
    Call,
    CallUnknown,
    Fault,
)
from calque.core.plan.limits import batches
from calque.errors import CallFailed, Unavailable
from calque.ports import Conflict, TooLarge

READ_BATCH = 1000
"""The names in one `get_partitions_by_names`: servers turn them into one SQL statement each."""
TOO_LARGE = re.compile(
    r"""message\ ?size | frame\ size | length\ exceeded | OutOfMemory | heap\ space
      | 2-byte\ value               # PostgreSQL's driver: more parameters of a statement than it can count
      | stack\ depth\ limit         # PostgreSQL: longer conditions than it can read
      | packet\ .*\ is\ too\ large  # MySQL
      | ORA-01795                   # Oracle: more than 1000 expressions in a list
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""The texts of servers and their databases about a call for too many objects."""


class HiveCalls:
    """The calls of one client. `lacking` are the calls that the server is known not to have."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.lacking: set[Call] = set()

    def found_many(
        self, names: Sequence[str], call: Call, arguments: Callable[[tuple[str, ...]], tuple[object, ...]]
    ) -> Iterator[Any]:
        """Make a call that takes names, for a batch of them at a time, and give the result of each batch: None where
        the server says that an object which the names belong to does not exist. A batch that the server finds too large
        is sent in halves."""
        waiting = [*batches(names, READ_BATCH)][::-1]
        while waiting:
            batch = waiting.pop()
            try:
                result = self.call_many(len(batch), call, *arguments(tuple(batch)))
            except TooLarge:
                waiting += [*batches(batch, (len(batch) + 1) // 2)][::-1]
            except Conflict:
                yield None
            else:
                yield result

    def found(self, call: Call, *arguments: Any) -> Any:
        """Make the call and return its result; None where the server says that the object does not exist."""
        try:
            return self.call(call, *arguments)
        except Conflict:
            return None

    def call(
        self,
        call: Call,
        *arguments: Any,
        seconds: float | None = None,
        setting: tuple[str, str] | None = None,
    ) -> Any:
        try:
            return self.client.call(call, *arguments, seconds=seconds, setting=setting)
        except Fault as fault:
            raise settled(fault, call) from fault

    def call_many(self, count: int, call: Call, *arguments: Any) -> Any:
        """Make a call about `count` objects, and return its result. A server that is sent too much says so, or hangs up
        without a word while it goes on answering other calls. Where it says so, or hangs up twice on one list, the call
        raises `TooLarge`."""
        for attempt in (1, 2):
            try:
                return self.call(call, *arguments)
            except CallFailed as failing:
                hung_up = isinstance(failing, ConnectionLost) and count > 1 and self.answers()
                if count < 2 or not (hung_up or TOO_LARGE.search(failing.why)):
                    raise
                if not hung_up or attempt == 2:
                    problem = f"The metastore does not take {count} objects in one {call.name}"
                    raise TooLarge(problem, failing.why, "They are sent again in parts") from failing
        raise AssertionError

    def answers(self) -> bool:
        """Tell whether the server answers another call."""
        try:
            self.found(messages.GET_DATABASE, "default")
        except Unavailable:
            return False
        return True

    def newest(self, newer: tuple[Any, ...], older: tuple[Any, ...], seconds: float | None = None) -> None:
        """Make the call `newer`, or the equivalent call `older` where the server does not have it. Both are a call with
        its arguments. A call that the server lacks is remembered."""
        if newer[0] not in self.lacking:
            try:
                self.call(*newer, seconds=seconds)
                return
            except CallUnknown:
                self.lacking.add(newer[0])
        self.call(*older, seconds=seconds)
