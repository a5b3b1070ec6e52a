"""What a channel sends, as any subscriber gets it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from calque.plugins.notices.model import Message
from calque.plugins.notices.ports import Subscription
from calque.plugins.notices.wiring import ChannelWiring

LOOK_SECONDS = 2.0
"""Between two looks whether there are new tables, where each has a topic."""


def messages(channel: ChannelWiring, seconds: float) -> Iterator[Message]:
    """Those that come within so many seconds. Tables that are made meanwhile are heard from soon after that on. Raises
    `Unavailable`, `AccessRefused`."""
    broker, topics = channel.broker(), channel.topics()
    selection = channel.channel().selection
    subscriptions: list[Subscription] = []
    known: set[str] = set()
    deadline, due = time.monotonic() + seconds, 0.0
    try:
        while (now := time.monotonic()) < deadline:
            if now >= due and (not known or not topics.is_one()):
                new_topics = [
                    topic
                    for topic in topics.topics(filter(selection.takes_table, channel.tables()))
                    if topic not in known
                ]
                if new_topics:
                    subscriptions.append(broker.subscribe(new_topics))
                    known.update(new_topics)
                due = now + LOOK_SECONDS
            if not subscriptions:
                time.sleep(0.1)
            for subscription in subscriptions:
                yield from subscription.receive(max(0.0, min(0.25, deadline - time.monotonic())))
    finally:
        for subscription in subscriptions:
            subscription.close()
        broker.close()


def record_of(message: Message) -> dict[str, Any]:
    """A message as a document."""
    return {
        "topic": message.topic,
        "key": message.key,
        "headers": dict(message.headers),
        "notice": json.loads(message.body),
    }
