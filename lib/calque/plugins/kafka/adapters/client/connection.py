"""How a Kafka cluster is reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.model.secrets import Options, revealed

Settings = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Connection:
    """`brokers` is a comma-separated list of host:port; `options` are settings of librdkafka (TLS, SASL and the like)
    for all that connects. `section` is where both stand in the configuration, for errors."""

    brokers: str
    options: Options = field(default_factory=dict)
    section: str = "[journal]"

    def settings(self) -> Settings:
        """Of every client, with the values of secrets. Reconnecting is quick, and what it meets is told by errors
        alone. Raises `AccessRefused`."""
        return {
            "bootstrap.servers": self.brokers,
            "client.id": "calque",
            "log_level": 0,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "socket.timeout.ms": 5_000,
            "socket.keepalive.enable": True,
            **revealed(self.options),
        }
