"""The message that a broker carries for calque, and the record of messages that a broker already has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Message:
    """A notice as a broker carries it. `body` is JSON in UTF-8. Brokers keep messages of one `topic` and `key` in
    order. `headers` are properties that brokers and their tools show beside the body, for example HCAT_EVENT."""

    topic: str
    key: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def digest(self) -> bytes:
        """Return 16 bytes of BLAKE2b over topic, key, body and sorted headers: equal for equal messages, and only for
        them."""
        digest = blake2b(digest_size=16)
        for part in (self.topic.encode(), self.key.encode(), self.body, repr(sorted(self.headers.items())).encode()):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
        return digest.digest()


@dataclass(slots=True)
class TakenMessages:
    """The digests of messages that a broker is known to have. A sender that repeats messages, because it does not know
    that all of them arrived, leaves these out."""

    digests: set[bytes] = field(default_factory=set)

    def add(self, messages: Iterable[Message]) -> None:
        self.digests.update(message.digest() for message in messages)

    def without(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages that the broker is not known to have, in the order given."""
        if not self.digests:
            return list(messages)
        return [message for message in messages if message.digest() not in self.digests]

    def forget(self, messages: Iterable[Message]) -> None:
        """Drop the digests of these messages, because they will not be sent again."""
        if self.digests:
            self.digests.difference_update(message.digest() for message in messages)
