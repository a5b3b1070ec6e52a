"""The translation between a message and frames of STOMP, in ActiveMQ's dialect."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from calque.errors import Refused
from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.model import Message

NAME = re.compile(r"[^\s*>,?:\\/\x00-\x1f]{1,250}")
"""The names that a topic may have. Others mean more than one topic to ActiveMQ: `*` and `>` stand for many, `,`
separates several, `?` begins options."""
OWN = re.compile("ActiveMQ[.]", re.IGNORECASE)
"""The beginning of the names of the broker's own topics."""
HEADER = re.compile(r"[^\s:\\\x00-\x1f]{1,250}")
GROUP = "JMSXGroupID"
"""The header of a message's group. A queue gives the messages of one group to one consumer, in order."""
KEY = "calque_key"
"""The header that repeats the key as a property, because a broker does not tell a subscriber the group."""
TAKEN = frozenset(
    {
        "destination",
        "content-length",
        "content-type",
        "receipt",
        "receipt-id",
        "transaction",
        "id",
        "ack",
        "message-id",
        "subscription",
        "persistent",
        "expires",
        "priority",
        "timestamp",
        "type",
        "reply-to",
        "correlation-id",
        "redelivered",
        "original-destination",
        "amq-msg-type",
        "transformation",
        "selector",
        "transformation-error",
        "browser",
        "brokerInTime",
        "brokerOutTime",
        GROUP,
        KEY,
        "JMSXGroupSeq",
        "JMSXUserID",
    }
)
"""Headers that mean something to the broker, or that the broker adds."""


def destination(topic: str, address: StompAddress) -> str:
    """Return the destination of the topic. Raises `Refused` for a name that does not name a single topic."""
    if not NAME.fullmatch(topic) or OWN.match(topic):
        raise Refused(
            f"ActiveMQ takes no topic named {topic}",
            "A name is no longer than 250 characters, without blanks and * > , ? : / \\, and not ActiveMQ's own",
            f"Change the topic below {address.section}",
        )
    return f"/topic/{topic}"


def send_headers(message: Message, address: StompAddress, keep_seconds: float) -> dict[str, str]:
    """Return the headers of the frame that sends the message. The body is text for JMS's consumers (a `TextMessage`),
    the key becomes the group, and the headers become properties. Raises `Refused` for a header or a topic that ActiveMQ
    does not take."""
    wrong = next((name for name in message.headers if name in TAKEN or not HEADER.fullmatch(name)), None)
    if wrong is not None:
        raise Refused(
            f"ActiveMQ takes no property named {wrong} with a message", "It is no name, or one of its own", "Rename it"
        )
    headers = {
        **message.headers,
        "destination": destination(message.topic, address),
        "persistent": "true",
        "amq-msg-type": "text",
        "content-length": str(len(message.body)),
    }
    if message.key:
        headers |= {GROUP: message.key, KEY: message.key}
    if keep_seconds:
        headers["expires"] = str(int((time.time() + keep_seconds) * 1000))
    return headers


def message_of(frame: Any) -> Message:
    headers: Mapping[str, str] = frame.headers
    body = frame.body if isinstance(frame.body, bytes) else (frame.body or "").encode()
    return Message(
        headers["destination"].removeprefix("/topic/"),
        headers.get(KEY, ""),
        body,
        {name: value for name, value in headers.items() if name not in TAKEN},
    )
