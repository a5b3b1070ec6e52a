"""The facts that services tell of themselves, for `calque check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calque.model.hive import Table

TOPIC_OPERATIONS = ("DESCRIBE", "READ", "WRITE")
"""The operations that calque's user has to be allowed on each topic."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """The listeners of a metastore, of which some write its log. `is_reported` is False when the metastore does not
    say. With `transactional` an event is written in the transaction of its change; with `afterwards` it is written
    after that, so that events can be lost. `others` are listeners of unknown names."""

    is_reported: bool
    transactional: bool = False
    afterwards: bool = False
    others: tuple[str, ...] = ()


class MetastoreInfo(Protocol):
    """The facts that a metastore tells of itself. Every method may raise `Unavailable`."""

    def ping(self) -> None:
        """Return when the server answers at all, also with an error."""

    def version(self) -> str:
        """Return `2`, `3`, or the exact version from Hive 4 on."""

    def listeners(self) -> Listeners: ...

    def setting(self, name: str) -> str:
        """Return a setting of the metastore; empty when it is unset or not told."""

    def has_compare_and_swap(self, scratch: Table) -> bool:
        """Return whether the metastore has compare-and-swap on a table's parameter. It is tried with the table
        `scratch`, which is made and dropped again. May raise `Conflict` and `Refused`."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """The facts that a cluster tells of a topic that is there. `settings` are Kafka's, with their defaults; `denied`
    are operations that calque's user may not do. `writers` are the other users who may write to the topic by the
    cluster's access control; with `is_open` the cluster has no access control, so that everybody may."""

    name: str
    partitions: int
    copies: int
    settings: Mapping[str, str]
    denied: Sequence[str] = ()
    writers: Sequence[str] = ()
    is_open: bool = False

    def number(self, setting: str) -> int:
        """Return a setting as a number; -1 where it is missing, which is no limit."""
        return int(self.settings.get(setting) or -1)


@dataclass(frozen=True, slots=True)
class RequiredTopic:
    """A topic that a journal needs. `compacted` keeps the newest record of each key; otherwise the topic keeps all
    records for `retention` seconds."""

    name: str
    partitions: int
    compacted: bool
    retention: float


class KafkaInfo(Protocol):
    """The facts that a Kafka cluster tells of itself. Every method may raise `Unavailable` and `Refused`."""

    def brokers(self) -> int: ...

    def topic(self, name: str) -> TopicInfo | None: ...


class SchemaRegistryInfo(Protocol):
    """The facts that a registry tells of one schema under one subject. Every method may raise `Unavailable` and
    `Refused`."""

    @property
    def url(self) -> str: ...

    @property
    def subject(self) -> str: ...

    def registered_id(self) -> int | None:
        """Return the schema's id in the registry; None where it is not registered."""

    def accepts(self) -> bool:
        """Return whether the schema can be registered."""


def tells_inserts(server: MetastoreInfo) -> bool | None:
    """Return whether the metastore's configuration has engines tell of rows that they insert
    (`hive.metastore.dml.events`); None where the server does not say. Raises `Unavailable`."""
    value = server.setting("metastore.dml.events") or server.setting("hive.metastore.dml.events")
    return {"true": True, "false": False}.get(value.lower())


COLUMN_CHANGES = "metastore.disallow.incompatible.col.type.changes"
"""The setting by which a metastore refuses columns of other types at their places."""


def forbids_column_changes(server: MetastoreInfo) -> bool | None:
    """Return whether the metastore refuses columns of other types at their places; None where it does not say. Raises
    `Unavailable`."""
    value = server.setting(COLUMN_CHANGES) or server.setting(f"hive.{COLUMN_CHANGES}")
    return {"true": True, "false": False}.get(value.lower())


def managed_warehouse(server: MetastoreInfo) -> str:
    return server.setting("metastore.warehouse.dir") or server.setting("hive.metastore.warehouse.dir")
