"""An admin client, which asks for a cluster's brokers and topics, and says why it gets no answer.

Where brokers ask for a login, one such client tries it before any other client is made, because the others would log in
again and again. A refused login is not tried twice in a process.
"""

from __future__ import annotations

import hashlib
import threading
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from calque.errors import AccessRefused
from calque.model.secrets import revealed
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.errors import DENIED, fault

WHY = DENIED | {KafkaError._SSL, KafkaError._RESOLVE}
"""Error codes that say more than that no broker answers."""
LOOKS = (0.2, 0.4, 0.8, 1.6, 2.0)
"""Seconds that each attempt waits for an answer. After each attempt the client's errors tell whether the login was
refused."""


class RefusedLogins:
    """The digests of the logins that brokers refused in this process, with the refusals. Safe from several threads."""

    def __init__(self) -> None:
        self._refusals: dict[bytes, AccessRefused] = {}
        self._trying = threading.Lock()

    def trial(self, connection: Connection) -> tuple[AdminClient, ClusterMetadata]:
        """Try the login unless it was refused before, one login at a time, and return and raise what `connected`
        does."""
        login = hashlib.sha256(repr((connection.brokers, revealed(connection.options))).encode()).digest()
        with self._trying:
            if login in self._refusals:
                raise self._refusals[login]
            try:
                return first_answer(connection)
            except AccessRefused as error:
                self._refusals[login] = error
                raise


REFUSED = RefusedLogins()


def connected(connection: Connection) -> tuple[AdminClient, ClusterMetadata]:
    """Connect, and return a client with the cluster's list of brokers and topics. Raises `AccessRefused`, also where
    the same login was refused before, and `Unavailable`."""
    return REFUSED.trial(connection) if asks_for_login(connection) else first_answer(connection)


def require_login(connection: Connection) -> None:
    """Try the login where the options have one. Raises `AccessRefused` and `Unavailable`, as `connected` does."""
    if asks_for_login(connection):
        REFUSED.trial(connection)


def asks_for_login(connection: Connection) -> bool:
    return any(name.startswith("sasl.") for name in connection.options)


def first_answer(connection: Connection) -> tuple[AdminClient, ClusterMetadata]:
    heard: list[KafkaError] = []
    once = {"reconnect.backoff.ms": 1_000, "reconnect.backoff.max.ms": 1_000}
    settings: dict[str, Any] = {**connection.settings(), **once, "error_cb": heard.append}
    admin = AdminClient(settings)
    error = KafkaError(KafkaError._TIMED_OUT)
    for seconds in LOOKS:
        try:
            return admin, admin.list_topics(timeout=seconds)
        except KafkaException as failed:
            error = failed.args[0]
        # The call only says that there was no answer. `error_cb` hears why, and `poll` calls it.
        admin.poll(0)
        if any(kafka_error.code() in DENIED for kafka_error in heard):
            break
    why = next((kafka_error for kafka_error in heard if kafka_error.code() in WHY), error)
    raise fault("its topics be listed", connection.brokers, why, connection.section)
