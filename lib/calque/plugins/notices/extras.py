"""What has to be installed for channels of notices."""

from __future__ import annotations

from functools import partial

from calque.config.extras import Extra
from calque.config.plugs import Config
from calque.plugins.kafka.extras import MODULES
from calque.plugins.notices.config import Protocol, channels_of


def channel_over(protocol: Protocol, config: Config) -> str:
    """The first channel whose broker speaks that."""
    channels = channels_of(config).values()
    return next((f"[notices.{one.name}]" for one in channels if one.keys.url.protocol == protocol), "")


KAFKA = Extra(name="kafka", modules=MODULES, needed=partial(channel_over, "kafka"))
ACTIVEMQ = Extra(name="activemq", modules=("stomp",), needed=partial(channel_over, "stomp"))
