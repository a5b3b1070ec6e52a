"""The packages that a journal on Kafka needs besides calque's own."""

from __future__ import annotations

from calque.config.extras import Extra
from calque.config.plugs import Config

MODULES = ("confluent_kafka", "httpx2")


def journal(config: Config) -> str:
    return "[journal]" if any(source.journal.format == "kafka" for source in config.sources.values()) else ""


KAFKA = Extra(name="kafka", modules=MODULES, needed=journal)
