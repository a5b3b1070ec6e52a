"""A broker that speaks STOMP, in ActiveMQ's dialect, as a message broker (port `NoticeBroker`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import count

from calque.errors import CalqueError
from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.adapters.stomp.errors import TOO_LARGE, too_large, unavailable
from calque.plugins.notices.adapters.stomp.frames import destination, send_headers
from calque.plugins.notices.adapters.stomp.session import SILENCE, Session, is_usable
from calque.plugins.notices.adapters.stomp.subscription import StompSubscription
from calque.plugins.notices.model import Message, TakenMessages

AT_ONCE, BYTES_AT_ONCE = 500, 4 << 20
"""The most messages, and bytes of them, in one transaction."""
KEPT = 7 * 86_400.0
"""Seconds after which a broker may throw a message away: as long as a journal keeps events by default."""


class StompNoticeBroker:
    """A broker at the first of the hosts in `address` that takes connections, reached over one connection for all
    topics, which is made when it is needed. Messages go in transactions, so that one answer of the broker stands for
    hundreds.

    `keep_seconds` is how long the broker keeps a message for subscribers that are away, because such messages would
    fill its store otherwise; 0 keeps them for ever. `silence` is the number of seconds without an answer after which
    the broker is given up.
    """

    def __init__(self, address: StompAddress, keep_seconds: float = KEPT, silence: float = SILENCE) -> None:
        self._address, self._keep_seconds, self._silence = address, keep_seconds, silence
        self._sending, self._closed = threading.Lock(), False
        self._session: Session | None = None
        self._transactions = count(1)
        self._taken = TakenMessages()
        """The messages of a failed `publish` whose transactions the broker had answered before it failed."""

    def publish(self, messages: Sequence[Message]) -> None:
        given, messages = messages, self._taken.without(messages)
        headers = [send_headers(message, self._address, self._keep_seconds) for message in messages]
        if not messages:
            return
        with self._sending:
            session = self._open()
            try:
                for first, end in transactions(messages):
                    self._send(session, messages[first:end], headers[first:end])
                    self._taken.add(messages[first:end])
            except BaseException:
                session.close()
                raise
            self._taken.forget(given)

    def subscribe(self, topics: Sequence[str]) -> StompSubscription:
        self._require_open()
        destinations = [destination(topic, self._address) for topic in dict.fromkeys(topics)]
        return StompSubscription(self._address, destinations, self._silence)

    def close(self) -> None:
        self._closed = True
        session = self._session
        if session is not None:
            session.close()

    def _open(self) -> Session:
        self._require_open()
        if self._session is None or not is_usable(self._session):
            if self._session is not None:
                self._session.close()
            self._session = Session(self._address, seconds=self._silence, silence=self._silence)
            if self._closed:
                self._session.close()
        return self._session

    def _send(self, session: Session, messages: Sequence[Message], headers: Sequence[dict[str, str]]) -> None:
        transaction = {"transaction": str(next(self._transactions))}
        try:
            session.send("BEGIN", transaction)
            for message, of_message in zip(messages, headers, strict=True):
                session.send("SEND", of_message | transaction, message.body)
            session.send_and_wait("COMMIT", transaction)
        except CalqueError:
            self._require_open()
            if TOO_LARGE.search(session.error()):
                # The broker does not say which message was too large; the largest one surely was.
                largest = max(zip(messages, headers, strict=True), key=lambda pair: size_of(*pair))
                raise too_large(self._address, session.error(), largest[0].topic, size_of(*largest)) from None
            raise

    def _require_open(self) -> None:
        if self._closed:
            raise unavailable(self._address, "The connection was closed")


def transactions(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield the transactions of the messages, each as the index of its first message and the index behind its last."""
    first, size = 0, 0
    for number, message in enumerate(messages):
        if number > first and (number - first == AT_ONCE or size + len(message.body) > BYTES_AT_ONCE):
            yield first, number
            first, size = number, 0
        size += len(message.body)
    yield first, len(messages)


def size_of(message: Message, headers: dict[str, str]) -> int:
    return len(message.body) + sum(len(name.encode()) + len(value.encode()) + 2 for name, value in headers.items())
