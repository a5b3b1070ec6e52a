"""A client of Kafka that is made when it is first needed, and that no caller waits for without end.

librdkafka ends a client when all that it asked is answered or given up, and waits for that: at times for ever, where
brokers died (its issue 4519). It may also ask for a partition's ends for ever, no matter which limit it was given
(2588). So threads of their own wait, which do not keep a process alive.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

from calque.model.secrets import Options, outdated, versions

MOMENT = 1.0
"""Seconds in which most clients end."""
C = TypeVar("C", Consumer, Producer)
T = TypeVar("T")


class ClientSlot(Generic[C]):
    """A holder of one client with these options, or of none. The client is let go with the slot, at the process's end,
    and when a secret of the options may have another value."""

    def __init__(self, options: Options | None = None) -> None:
        self.held: C | None = None
        self._options, self._version = options or {}, versions({})
        self._end: weakref.finalize[[C], ClientSlot[C]] | None = None

    def client(self, make: Callable[[], C]) -> C:
        """Return the client that is held; where there is none, hold and return the one that `make` makes."""
        if self.held is not None and outdated(self._options, self._version):
            self.drop()
        if self.held is None:
            self._version = versions(self._options)
            self.held = make()
            self._end = weakref.finalize(self, let_go, self.held)
        return self.held

    def drop(self) -> None:
        """Let the client go and hold none."""
        if self._end is not None:
            self._end()
        self.held = self._end = None


def let_go(client: Consumer | Producer) -> None:
    """Close the client. Returns when that is done, or after `MOMENT` seconds, while a thread goes on closing."""

    def end() -> None:
        # A client that failed for good raises its error once more.
        with suppress(KafkaException):
            client.close()

    ending = threading.Thread(target=end, name="kafka-end", daemon=True)
    # A process that is ending may start no threads any more.
    with suppress(RuntimeError):
        ending.start()
        ending.join(MOMENT)


def answered(call: Callable[[], T], seconds: float) -> T:
    """Return what `call` returns, and raise what it raises. Raises `TimeoutError` when it does neither within
    `seconds`; its thread is then left behind."""
    answer = Future[T]()

    def wait() -> None:
        try:
            answer.set_result(call())
        except Exception as error:  # noqa: BLE001 - whoever asked raises it
            answer.set_exception(error)

    threading.Thread(target=wait, name="kafka-ask", daemon=True).start()
    return answer.result(seconds)
