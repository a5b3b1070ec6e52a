"""A message broker in dictionaries (port `NoticeBroker`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from re import fullmatch

from calque.errors import AccessRefused, Refused, Unavailable
from calque.plugins.notices.model import Message, TakenMessages

NAME = "[A-Za-z0-9._-]{1,249}"
"""A topic's name, as Kafka has it."""
LARGEST = 1 << 20


@dataclass(slots=True)
class BrokerFaults:
    """What tests switch on, at any time. Each holds until it is switched off again."""

    away: bool = False
    """Nothing answers."""
    silent: bool = False
    """It takes connections and messages, and answers nothing: a `publish` gives up when its time is over, which here
    is at once, and all its messages have arrived."""
    refused: bool = False
    """The login is refused."""
    refused_topics: set[str] = field(default_factory=set)
    """The rights on these topics are missing."""
    dies_after: int | None = None
    """It is `away` once it has taken so many more messages."""


class MemoryNoticeBroker:
    """topics: every message that each topic got, in order. Subscriptions follow by positions."""

    def __init__(self, largest: int = LARGEST) -> None:
        self.topics: dict[str, list[Message]] = {}
        self.faults = BrokerFaults()
        self.published = threading.Condition()
        self._largest, self._closed = largest, False
        self._taken = TakenMessages()
        """Of a `publish` that failed."""

    def publish(self, messages: Sequence[Message]) -> None:
        with self.published:
            self._require([message.topic for message in messages])
            for message in messages:
                if len(message.body) > self._largest:
                    raise Refused(
                        f"The broker takes no message of {len(message.body)} bytes for topic {message.topic}",
                        f"It takes {self._largest} bytes at most",
                        "Raise its limit",
                    )
            for message in self._taken.without(messages):
                self._take(message)
                self._taken.add([message])
            self.published.notify_all()
            if self.faults.silent:
                raise away("It does not answer")
            self._taken.forget(messages)

    def subscribe(self, topics: Sequence[str]) -> MemorySubscription:
        with self.published:
            self._require(topics)
            if self.faults.silent:
                raise away("It does not answer")
            return MemorySubscription(self, {name: len(self.topics.setdefault(name, [])) for name in topics})

    def switch(self, **faults: object) -> None:
        """Set faults by their names, and wake who waits."""
        with self.published:
            for name, value in faults.items():
                if name not in BrokerFaults.__slots__:
                    raise AttributeError(name)
                setattr(self.faults, name, value)
            self.published.notify_all()

    def close(self) -> None:
        self._closed = True

    def _require(self, topics: Sequence[str]) -> None:
        if self._closed:
            raise away("The connection was closed")
        if self.faults.away:
            raise away("Nothing answers")
        refused = self.faults.refused_topics.intersection(topics)
        if self.faults.refused or refused:
            problem = f"topic {min(refused)}" if refused else "the login"
            raise AccessRefused(f"The broker refuses {problem}", "It was told to", "Switch that off")
        for name in topics:
            if not fullmatch(NAME, name) or name in (".", ".."):
                raise Refused(f"The broker takes no topic named {name}", f"Names match {NAME}", "Name it otherwise")

    def _take(self, message: Message) -> None:
        if self.faults.dies_after is not None:
            if self.faults.dies_after == 0:
                self.faults.dies_after, self.faults.away = None, True
                self.published.notify_all()
                raise away("It went away")
            self.faults.dies_after -= 1
        self.topics.setdefault(message.topic, []).append(message)


class MemorySubscription:
    """Follows topics from these positions on."""

    def __init__(self, broker: MemoryNoticeBroker, positions: dict[str, int]) -> None:
        self._broker, self._positions, self._closed = broker, positions, False

    def receive(self, seconds: float) -> Sequence[Message]:
        deadline = time.monotonic() + seconds
        with self._broker.published:
            while not self._closed:
                if self._broker.faults.refused:
                    raise AccessRefused("The broker refuses the login", "It was told to", "Switch that off")
                messages = () if self._broker.faults.away or self._broker.faults.silent else self._next()
                remaining = deadline - time.monotonic()
                if messages or remaining <= 0:
                    return messages
                self._broker.published.wait(remaining)
        return ()

    def close(self) -> None:
        with self._broker.published:
            self._closed = True
            self._broker.published.notify_all()

    def _next(self) -> Sequence[Message]:
        messages: list[Message] = []
        for name, position in self._positions.items():
            arrived = self._broker.topics.get(name, [])
            messages += arrived[position:]
            self._positions[name] = len(arrived)
        return messages


def away(why: str) -> Unavailable:
    return Unavailable("The broker in memory does not let anything be sent or received", why, "It is tried again")
