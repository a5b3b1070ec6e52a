"""The files of an ACID table at one moment, as its valid write ids choose them: `read_state`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.core.acid.contents import content_at, flattened
from calque.engine.sides.acid_looks import look_at
from calque.engine.sides.sides import SourceSide
from calque.model.files import Listing
from calque.model.hive import Table
from calque.model.names import EventId, table_name
from calque.ports.transactions import TransactionReader


@dataclass(frozen=True, slots=True)
class AcidState:
    """The files of an ACID table by partition, at the event `high` or at another moment since the read began. None
    where a commit or a compaction came between, or a file of the state was being replaced."""

    high: EventId
    listings: dict[str, Listing] | None


def read_state(
    source: SourceSide, transactions: TransactionReader, table: Table, places: Mapping[str, str]
) -> AcidState:
    """Read the files of the table, whose partitions lie at `places` (`""`: a table without partitions). Raises as
    `Storage.list` and `TransactionReader.valid_write_ids` do."""
    name = table_name(table.database, table.name)
    states, valid = transactions.open_transactions(), transactions.valid_write_ids([name])[name]
    looks = look_at(source.storage, places.values())
    high, later = source.log.current(), transactions.open_transactions()
    if transactions.valid_write_ids([name])[name] != valid:
        return AcidState(high, None)
    listings: dict[str, Listing] = {}
    for partition, place in places.items():
        content = content_at(looks[place], valid, valid, states.is_committed, later.is_committed)
        if content is None:
            return AcidState(high, None)
        listings[partition] = flattened(content, with_bases=source.natively(name))
    return AcidState(high, listings)
