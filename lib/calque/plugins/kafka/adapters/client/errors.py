"""Kafka's errors as calque's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from calque.errors import AccessRefused, CalqueError, Refused, Unavailable

PATIENCE = 5.0
"""Seconds in which a broker must answer."""
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
DENIED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._TRANSPORT,
        *MISSING,
    }
)
"""While a partition changes its leader, or the client does not know it."""
NEVER_MADE = frozenset({KafkaError.TOPIC_EXCEPTION, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG})
"""Topics that brokers do not take, whenever they are asked."""
OUTSIDE = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION})


class RecordsLost(Exception):
    """What was to be read is not in the topic any more, or not as it was: what is known of it is to be learnt anew."""


@contextmanager
def as_calque_errors(action: str, brokers: str, section: str = "[journal]") -> Iterator[None]:
    """Kafka's errors inside become what `fault` makes of them."""
    try:
        yield
    except KafkaException as error:
        raise fault(action, brokers, error.args[0], section) from error


def fault(action: str, brokers: str, error: KafkaError, section: str = "[journal]") -> CalqueError:
    """What to raise for an error of a client of `brokers`, which stand in that section of the configuration:
    `AccessRefused`, `Refused`, else `Unavailable`."""
    if error.code() in DENIED:
        return AccessRefused(
            f"Kafka denies that {action}",
            f"{error.name()}: {error.str()}",
            f"Check {section} options, and what the user may do there",
        )
    if error.code() in NEVER_MADE:
        return Refused(
            f"Kafka at {brokers} does not let {action}",
            f"{error.name()}: {error.str()}",
            "Name the topic otherwise, or change the rules of the brokers",
        )
    return Unavailable(
        f"Kafka at {brokers} does not let {action}",
        f"{error.name()}: {error.str()}",
        f"Check that its brokers run and {section} names them; it is tried again",
    )
