"""The port of a message broker: notices are published to it, and calque's own subscribers read from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from calque.plugins.notices.model import Message
from calque.ports.forwarding import Interceptor, direct


class Subscription(Protocol):
    """A subscription to some topics. It receives the messages that were published after it was made."""

    def receive(self, seconds: float) -> Sequence[Message]:
        """Return the messages that came since the last call, in order within each topic and key. Wait up to `seconds`
        for the first message, and return an empty sequence where none came. While the broker is away the call waits for
        it, and no message is lost over that."""

    def close(self) -> None:
        """End the subscription. A second call does nothing."""


class NoticeBroker(Protocol):
    """A broker at one address. Every method may raise `AccessRefused`, for the login or for rights on a topic."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Send the messages in order, make the topics that are missing, and return when the broker has all messages
        durably.

        Raises `Unavailable` where it is not known that all arrived. Some may have arrived then: of each topic and key
        only the first ones. A caller that sends all of them again loses none, and through the same object none is sent
        twice, as long as the broker itself can tell what it took. Raises `Refused`, which names the message, where the
        broker will never take a message, for its size or its topic's name. Sockets and threads do not grow with the
        number of topics.
        """

    def subscribe(self, topics: Sequence[str]) -> Subscription:
        """Subscribe to the topics, and make those that are missing. The subscription receives every message that is
        published after this call has returned."""

    def close(self) -> None:
        """Close the connection and give up what is being sent. A second call does nothing."""


class ForwardingBroker:
    """A broker that passes each `publish` through an interceptor and hands everything else to `broker`."""

    def __init__(self, broker: NoticeBroker, intercept: Interceptor = direct) -> None:
        self._broker, self._intercept = broker, intercept

    def publish(self, messages: Sequence[Message]) -> None:
        self._intercept("publish", self._broker.publish, messages)

    def subscribe(self, topics: Sequence[str]) -> Subscription:
        return self._broker.subscribe(topics)

    def close(self) -> None:
        self._broker.close()
