"""What a message broker carries for calque."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Message:
    """One notice as a broker carries it: `body` is JSON in UTF-8. Messages of one topic and key stay in order.
    `headers` are properties that brokers and their tools show beside the body, for example HCAT_EVENT."""

    topic: str
    key: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
