"""The translation of Kafka's errors into calque's."""

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
"""Error codes while a partition changes its leader, or while the client does not know the leader."""
NEVER_MADE = frozenset({KafkaError.TOPIC_EXCEPTION, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG})
"""Error codes of topics that brokers will not make, no matter when they are asked."""
OUTSIDE = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION})


class RecordsLost(Exception):
    """Raised when records that were to be read are not in the topic any more, or are others than before. All that is
    remembered of the topic has to be read again."""


@contextmanager
def as_calque_errors(action: str, brokers: str, section: str = "[journal]") -> Iterator[None]:
    """Turn Kafka's errors within the block into the error that `fault` makes of them."""
    try:
        yield
    except KafkaException as error:
        raise fault(action, brokers, error.args[0], section) from error


def fault(action: str, brokers: str, error: KafkaError, section: str = "[journal]") -> CalqueError:
    """Return the error to raise for an error of a client of `brokers`, which stand in `section` of the configuration:
    `AccessRefused`, `Refused`, else `Unavailable`. `action` says what Kafka does not let happen."""
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
