"""The address and the options by which a Kafka cluster is reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.model.secrets import Options, revealed

Settings = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Connection:
    """The access to a Kafka cluster. `brokers` is a comma-separated list of host:port; `options` are settings of
    librdkafka (TLS, SASL and the like) for all its clients. `section` is where both stand in the configuration, for
    errors."""

    brokers: str
    options: Options = field(default_factory=dict)
    section: str = "[journal]"

    def settings(self) -> Settings:
        """Return the settings of every client, with the values of secrets. Clients reconnect quickly and write no log;
        errors alone tell what happens. Raises `AccessRefused` where a secret can't be read."""
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
