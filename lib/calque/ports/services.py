"""What services say of themselves, for `calque check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calque.model.hive import Table

TOPIC_OPERATIONS = ("DESCRIBE", "READ", "WRITE")
"""What calque's user has to be allowed to do with each topic."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """What a metastore says of what writes its log. `is_reported` is False when it does not say; `others` are listeners
    of names that are not known."""

    is_reported: bool
    transactional: bool = False
    afterwards: bool = False
    others: tuple[str, ...] = ()


class MetastoreInfo(Protocol):
    """What a metastore says of itself. Every method may raise `Unavailable`."""

    def ping(self) -> None:
        """Returns when the server answers, whatever it says."""

    def version(self) -> str:
        """`2`, `3`, or the exact one from Hive 4 on."""

    def listeners(self) -> Listeners: ...

    def setting(self, name: str) -> str:
        """Empty when it is unset or not told."""

    def has_compare_and_swap(self, scratch: Table) -> bool:
        """Tried with a table that is made and dropped again. May raise `Conflict` and `Refused`."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """What a cluster says of a topic that is there. `settings` are Kafka's, with their defaults; `denied` are
    operations that our user may not do. `writers` are the others who may write there by the cluster's access control;
    with `is_open` it has none, so that everybody may."""

    name: str
    partitions: int
    copies: int
    settings: Mapping[str, str]
    denied: Sequence[str] = ()
    writers: Sequence[str] = ()
    is_open: bool = False

    def number(self, setting: str) -> int:
        """-1 for none, which is no limit."""
        return int(self.settings.get(setting) or -1)


@dataclass(frozen=True, slots=True)
class RequiredTopic:
    """A topic that a journal needs; `compacted` keeps the newest record of each key, else all for `retention`
    seconds."""

    name: str
    partitions: int
    compacted: bool
    retention: float


class KafkaInfo(Protocol):
    """What a cluster says of itself. Every method may raise `Unavailable` and `Refused`."""

    def brokers(self) -> int: ...

    def topic(self, name: str) -> TopicInfo | None: ...


class SchemaRegistryInfo(Protocol):
    """What a registry says of one schema under one subject. Every method may raise `Unavailable` and `Refused`."""

    @property
    def url(self) -> str: ...

    @property
    def subject(self) -> str: ...

    def registered_id(self) -> int | None:
        """The schema's id there; None where it is not registered."""

    def accepts(self) -> bool:
        """Whether it can be registered."""


def tells_inserts(server: MetastoreInfo) -> bool | None:
    """Whether the metastore's configuration has engines tell of rows that they insert (`hive.metastore.dml.events`);
    None where the server does not say. Raises `Unavailable`."""
    value = server.setting("metastore.dml.events") or server.setting("hive.metastore.dml.events")
    return {"true": True, "false": False}.get(value.lower())


COLUMN_CHANGES = "metastore.disallow.incompatible.col.type.changes"
"""The setting by which a metastore refuses columns of other types at their places."""


def forbids_column_changes(server: MetastoreInfo) -> bool | None:
    """Whether the metastore refuses columns of other types at their places; None where it does not say. Raises
    `Unavailable`."""
    value = server.setting(COLUMN_CHANGES) or server.setting(f"hive.{COLUMN_CHANGES}")
    return {"true": True, "false": False}.get(value.lower())


def managed_warehouse(server: MetastoreInfo) -> str:
    return server.setting("metastore.warehouse.dir") or server.setting("hive.metastore.warehouse.dir")
