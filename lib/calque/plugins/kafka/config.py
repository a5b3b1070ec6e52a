"""The settings of librdkafka, the Kafka client, that a configuration may give."""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import Refused
from calque.model.secrets import Options, revealed

ORDER = "The journal's order and completeness rest on it"
READING = "Readers begin at the events that they need and keep no group's position"
TAKEN: Mapping[str, tuple[str, str]] = {
    "bootstrap.servers": ("It has a key of its own", 'Write brokers = "host:9092" below [journal]'),
    "metadata.broker.list": ("It has a key of its own", 'Write brokers = "host:9092" below [journal]'),
    **dict.fromkeys(
        (
            "acks",
            "request.required.acks",
            "enable.idempotence",
            "enable.gapless.guarantee",
            "max.in.flight",
            "max.in.flight.requests.per.connection",
            "transactional.id",
            "retries",
            "message.send.max.retries",
            "message.max.bytes",
            "isolation.level",
            "check.crcs",
        ),
        (ORDER, "Remove it"),
    ),
    **dict.fromkeys(
        (
            "group.id",
            "group.instance.id",
            "group.protocol",
            "auto.offset.reset",
            "enable.partition.eof",
            "enable.auto.commit",
            "auto.commit.enable",
            "enable.auto.offset.store",
        ),
        (READING, "Remove it"),
    ),
    **dict.fromkeys(
        ("sasl.jaas.config", "ssl.truststore.location", "ssl.keystore.type", "ssl.truststore.type"),
        (
            "It is a setting of Kafka's Java client, and calque uses librdkafka",
            'Write e.g. "sasl.username", "sasl.password_env" and "ssl.ca.location"',
        ),
    ),
}
"""Settings that calque needs for itself, or that belong to another client: why each can't be given, and what to do."""


def refusal(options: Options) -> tuple[str, Refused] | None:
    """Return the first setting that can't be given, and why; None where all can. No connection is made."""
    for key in options:
        if key in TAKEN:
            return key, Refused(f'"{key}" can\'t be set', *TAKEN[key])
    return _unknown(options) if options else None


def _unknown(options: Options) -> tuple[str, Refused] | None:
    """Ask librdkafka itself, without an address, so that it checks names, values and files, and return its refusal.
    Secrets are blotted out of its message."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ModuleNotFoundError:  # without the extra `kafka`, which `calque check` names
        return None
    try:
        AdminClient({**revealed(options), "log_level": 0})
    except KafkaException as error:
        message = error.args[0].str()
        for value in options.values():
            message = message if isinstance(value, str) else message.replace(value.read(), "…")
        named_key = next((key for key in options if key in message), "")
        todo = "Write it as librdkafka's documentation (CONFIGURATION.md) has it"
        return named_key, Refused("librdkafka does not take these settings", message, todo)
    return None
