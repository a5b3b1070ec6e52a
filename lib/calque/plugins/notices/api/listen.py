"""The messages of a channel, received as any subscriber receives them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from calque.plugins.notices.model import Message
from calque.plugins.notices.ports import Subscription
from calque.plugins.notices.wiring import ChannelWiring

LOOK_SECONDS = 2.0
"""Seconds between two looks for new tables, where each table has a topic."""


def messages(channel: ChannelWiring, seconds: float) -> Iterator[Message]:
    """Subscribe to the channel's topics and yield the messages that come within `seconds`. Where each table has a
    topic, tables that are made meanwhile are looked for every `LOOK_SECONDS`; their earlier messages are not yielded.
    Raises `Unavailable`, `AccessRefused`."""
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
    """Return a message as a document for JSON, with its body parsed under `notice`."""
    return {
        "topic": message.topic,
        "key": message.key,
        "headers": dict(message.headers),
        "notice": json.loads(message.body),
    }
