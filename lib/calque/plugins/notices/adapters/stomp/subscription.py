"""A subscription to topics of ActiveMQ, from now on (port `Subscription`).

A topic forgets a message for which it has no subscriber. So each topic gets a durable subscription, which the broker
keeps while its client is away, under a client id that only this subscription has. `close` removes the durable
subscriptions. Where a process dies instead, they are left: the broker keeps messages for them until those expire, or an
operator removes them, or the broker's `offlineDurableSubscriberTimeout` does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from uuid import uuid4

from calque.errors import CalqueError, Unavailable
from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.adapters.stomp.frames import message_of
from calque.plugins.notices.adapters.stomp.session import SILENCE, Session, is_usable
from calque.plugins.notices.model import Message

HELD, HELD_AT_MOST = 10_000, 100
"""The most messages that a broker sends ahead: of all topics together, and of one topic."""
AT_ONCE = 1_000
"""The most messages that one call gives."""
AGAIN = 0.2
"""Seconds between two attempts to connect."""


class StompSubscription:
    """A subscription over one connection for all its topics. A message is acknowledged as soon as `receive` takes it; a
    message whose acknowledgement a broken connection lost comes again. Only one thread may call `receive` at a time."""

    def __init__(self, address: StompAddress, destinations: Sequence[str], silence: float = SILENCE) -> None:
        self._address, self._destinations = address, list(destinations)
        self._silence = silence
        self.client_id = f"calque-{uuid4().hex}"
        self._prefetch = max(1, min(HELD_AT_MOST, HELD // max(1, len(self._destinations))))
        self._closed = False
        self._session: Session | None = None
        self._subscribed(silence)

    def receive(self, seconds: float) -> Sequence[Message]:
        deadline = time.monotonic() + seconds
        while not self._closed:
            remaining = deadline - time.monotonic()
            try:
                session = self._subscribed(min(max(remaining, 1.0), self._silence))
                messages = self._taken(session, max(remaining, 0.0))
                if not messages and is_usable(session):
                    return ()
                if messages:
                    return messages
                self._require_no_refusal(session)
            except Unavailable:
                pass
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return ()
            time.sleep(min(AGAIN, remaining))
        return ()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with suppress(CalqueError):
            session = self._session
            if session is None or not is_usable(session):
                session = Session(self._address, self.client_id, silence=self._silence)
            try:
                self._remove(session)
            finally:
                session.close()

    def _remove(self, session: Session) -> None:
        """End the consumers, then remove the durable subscriptions that the broker keeps for them."""
        numbers = [str(number) for number in range(len(self._destinations))]
        session.send_all("UNSUBSCRIBE", [{"id": number} for number in numbers])
        session.send_all("UNSUBSCRIBE", [{"id": number, "activemq.subscriptionName": number} for number in numbers])

    def _subscribed(self, seconds: float) -> Session:
        if self._session is not None and is_usable(self._session):
            return self._session
        if self._session is not None:
            self._session.close()
        session = Session(self._address, self.client_id, seconds, self._silence)
        try:
            session.send_all("SUBSCRIBE", [*self._headers()])
        except BaseException:
            session.close()
            raise
        self._session = session
        return session

    def _headers(self) -> Iterator[dict[str, str]]:
        for number, destination in enumerate(self._destinations):
            yield {
                "id": str(number),
                "destination": destination,
                "ack": "client",
                "activemq.subscriptionName": str(number),
                "activemq.prefetchSize": str(self._prefetch),
            }

    def _taken(self, session: Session, seconds: float) -> list[Message]:
        """Return the messages that are there, after waiting up to `seconds` for the first one or for the connection's
        end."""
        with session.changed:
            session.changed.wait_for(lambda: session.messages or session.ended or self._closed, seconds)
            frames = [session.messages.popleft() for _ in range(min(AT_ONCE, len(session.messages)))]
        last = {frame.headers["subscription"]: frame.headers["ack"] for frame in frames}
        with suppress(Unavailable):
            for acknowledgement in last.values():
                session.send("ACK", {"id": acknowledgement})
        return [message_of(frame) for frame in frames]

    def _require_no_refusal(self, session: Session) -> None:
        """Raise the error that the broker told as it ended the connection, else `Unavailable`."""
        raise session.problem("It closed the connection")
