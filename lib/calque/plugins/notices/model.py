"""What a message broker carries for calque."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Message:
    """One notice as a broker carries it: `body` is JSON in UTF-8. Messages of one topic and key stay in order.
    `headers` are properties that brokers and their tools show beside the body, for example HCAT_EVENT."""

    topic: str
    key: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def digest(self) -> bytes:
        """The same for equal messages alone."""
        digest = blake2b(digest_size=16)
        for part in (self.topic.encode(), self.key.encode(), self.body, repr(sorted(self.headers.items())).encode()):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
        return digest.digest()


@dataclass(slots=True)
class TakenMessages:
    """What a broker has of messages that are sent again, as not all of them were known to have arrived."""

    digests: set[bytes] = field(default_factory=set)

    def add(self, messages: Iterable[Message]) -> None:
        self.digests.update(message.digest() for message in messages)

    def without(self, messages: Iterable[Message]) -> list[Message]:
        """Those that the broker does not have."""
        if not self.digests:
            return list(messages)
        return [message for message in messages if message.digest() not in self.digests]

    def forget(self, messages: Iterable[Message]) -> None:
        """They are not sent again."""
        if self.digests:
            self.digests.difference_update(message.digest() for message in messages)
