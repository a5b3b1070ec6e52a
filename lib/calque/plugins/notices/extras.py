"""The packages that channels of notices need besides calque's own: one extra for Kafka, one for STOMP."""

from __future__ import annotations

from functools import partial

from calque.config.extras import Extra
from calque.config.plugs import Config
from calque.plugins.kafka.extras import MODULES
from calque.plugins.notices.config import Protocol, channels_of


def channel_over(protocol: Protocol, config: Config) -> str:
    """Return the section `[notices.NAME]` of the first channel whose broker speaks `protocol`; empty where there is
    none."""
    channels = channels_of(config).values()
    return next((f"[notices.{one.name}]" for one in channels if one.keys.url.protocol == protocol), "")


KAFKA = Extra(name="kafka", modules=MODULES, needed=partial(channel_over, "kafka"))
ACTIVEMQ = Extra(name="activemq", modules=("stomp",), needed=partial(channel_over, "stomp"))
