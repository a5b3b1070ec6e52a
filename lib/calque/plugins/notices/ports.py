"""A message broker: what notices go to, and what subscribers of calque read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from calque.plugins.notices.model import Message
from calque.ports.forwarding import Interceptor, direct


class Subscription(Protocol):
    """Messages of some topics, from the moment on at which the subscription was made."""

    def receive(self, seconds: float) -> Sequence[Message]:
        """What came since the last call, in order for each topic and key; waits for the first message for that long,
        and gives nothing where none came. A broker that is away is waited for, and no message is lost over that."""

    def close(self) -> None:
        """Idempotent."""


class NoticeBroker(Protocol):
    """One broker, under one address. Every method may raise `AccessRefused` (the login, or rights on a topic)."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Send them in order, and return when the broker has all of them durably. Topics that are missing are made.
        `Unavailable` where that is not known of all: some may have arrived then, of each topic and key only first
        ones; whoever sends all of them again loses none. Through the same object it sends none twice, as long as the
        broker itself can tell what it took. `Refused` names a message that the
        broker will never take (its size, its topic's name). Sockets and threads do not grow with the number of
        topics."""

    def subscribe(self, topics: Sequence[str]) -> Subscription:
        """Whatever is published to the topics after this has returned is received. Topics that are missing are
        made."""

    def close(self) -> None:
        """Gives up what is being sent. Idempotent."""


class ForwardingBroker:
    """A broker whose publications pass an interceptor."""

    def __init__(self, broker: NoticeBroker, intercept: Interceptor = direct) -> None:
        self._broker, self._intercept = broker, intercept

    def publish(self, messages: Sequence[Message]) -> None:
        self._intercept("publish", self._broker.publish, messages)

    def subscribe(self, topics: Sequence[str]) -> Subscription:
        return self._broker.subscribe(topics)

    def close(self) -> None:
        self._broker.close()
