"""The topics of a journal, and how they are reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.model.secrets import Options
from calque.plugins.kafka.adapters.client.connection import Connection, Settings


@dataclass(frozen=True, slots=True)
class Topic:
    """The topics of one journal: its events are in topic `name`, its evidence and its positions in two more beside it.

    `brokers` is a comma-separated list of host:port; `options` are settings of librdkafka (TLS, SASL and the like) for
    all its clients; `retention` is in seconds, for topics that calque makes. `registry` is the root of a schema
    registry's API, without a closing slash: events name their schema by its id there; empty for none.
    `registry_options` are `user` and `password`, where the registry wants them.
    """

    brokers: str
    name: str
    options: Options = field(default_factory=dict)
    retention: float = 7 * 86400.0
    registry: str = ""
    registry_options: Options = field(default_factory=dict)

    @property
    def evidence(self) -> str:
        return f"{self.name}.evidence"

    @property
    def positions(self) -> str:
        """The name of a compacted topic that notes where each of the two other topics ended, in case retention removes
        every record that says so."""
        return f"{self.name}.positions"

    @property
    def connection(self) -> Connection:
        return Connection(self.brokers, self.options)

    def settings(self) -> Settings:
        """Return the settings of every client, with the values of secrets. Raises `AccessRefused` where a secret can't
        be read."""
        return self.connection.settings()
