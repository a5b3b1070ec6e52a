"""A source as one target's policy leaves it: with the partitions of `partitions`, and the tables of `where`.

The ports of this source answer as those of a smaller source would, so that windows, exact reads, `verify` and `plan`
know of no subsets (`core.policy.subset`). A policy without subsets has the source itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.core.events import decode
from calque.core.events.decode import Undecodable
from calque.core.events.effects import ALTERS_OR_RENAMES_TABLE, CARRIES_TABLE
from calque.core.policy.subset import KeyMissing, Subset, crossed, narrowed
from calque.engine.sides.journal_reads import messages
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused
from calque.model.hive import Partition, Table, is_partitioned, projects_partitions
from calque.model.journal import Entry, Event, EventKind
from calque.model.names import Span, TableName, table_name
from calque.ports import CatalogReader, Journal, Scans
from calque.ports.forwarding import ForwardingCatalogReader, ForwardingJournal, ForwardingScans

LOG = logging.getLogger(__name__)


def subset_source(source: SourceSide, subset: Subset) -> SourceSide:
    """Return the source as `subset` leaves it; the source itself if the subset leaves nothing out."""
    if subset.is_all:
        return source
    return replace(
        source,
        catalog=SubsetCatalog(source.catalog, subset),
        journal=SubsetJournal(source.journal, subset),
        scans=SubsetScans(source.scans, subset) if source.scans is not None else None,
    )


class SubsetCatalog(ForwardingCatalogReader):
    """The source's catalog, without the tables that `where` does not take and the partitions that the policy does not.
    `table` raises `Refused` for a table whose partitions the policy's predicate does not fit."""

    def __init__(self, reader: CatalogReader, subset: Subset) -> None:
        super().__init__(reader)
        self._subset = subset

    def tables(self, database: str) -> Sequence[str]:
        names = super().tables(database)
        if self._subset.where is None:
            return names
        headers = super().headers(database, names)
        return [name for name in names if name in headers and self._subset.has_table(headers[name])]

    def table(self, name: TableName) -> Table | None:
        table = super().table(name)
        if table is None or not self._subset.has_table(table):
            return None
        self._subset.require(name, table)
        return table

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        headers = super().headers(database, names)
        return {name: table for name, table in headers.items() if self._subset.has_table(table)}

    def partition_names(self, name: TableName) -> Sequence[str]:
        names = super().partition_names(name)
        try:
            return self._subset.left(name, names)
        except KeyMissing as error:
            raise misfit(name, error) from None

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        """Return the table's partitions if they are at most `most`, else None. Only those that the policy leaves are
        counted, where a predicate over their names decides that."""
        name = table_name(table.database, table.name)
        if self._subset.predicate(name) is None:
            return super().few_partitions(table, most)
        names = self.partition_names(name)
        return super().partitions(name, names) if len(names) <= most else None

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        try:
            return super().partitions(name, self._subset.left(name, names))
        except KeyMissing as error:
            raise misfit(name, error) from None


def misfit(name: TableName, error: KeyMissing) -> Refused:
    what = f"The policy's predicate over partitions of {name} does not fit the table"
    return Refused(what, str(error), "Correct it below partitions, and reload")


class SubsetJournal(ForwardingJournal):
    """The source's journal with the entries that the smaller source would have. Messages (`events`) are not narrowed:
    they are those of the whole log."""

    def __init__(self, journal: Journal, subset: Subset) -> None:
        super().__init__(journal)
        self._subset = subset

    def entries(self, span: Span) -> Sequence[Entry]:
        entries = super().entries(span)
        if self._subset.where is not None:
            entries = list(self._sided(entries))
        narrowed_entries = (narrowed(self._subset, entry) for entry in self._fitting(entries))
        return [entry for entry in narrowed_entries if entry is not None]

    def _sided(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield the entries of tables that `where` takes before or after the event. An ALTER that takes a table over
        the edge of `where` becomes a drop or an arrival. An event that can't be decoded becomes unfoldable."""
        events = messages(self._journal, [entry.event_id for entry in entries if entry.keys.kind in CARRIES_TABLE])
        event = next(events, None)
        for entry in entries:
            while event is not None and event.event_id < entry.event_id:
                event = next(events, None)
            if entry.keys.kind not in CARRIES_TABLE or event is None or event.event_id != entry.event_id:
                yield entry
                continue
            try:
                with work_on(f"the look at event {event.event_id}", Undecodable):
                    before, after = self._sides(event, entry)
            except (Undecodable, ObjectDefect) as error:
                yield unfoldable(entry, why_of(error))
                continue
            sided = crossed(entry, before, after)
            if sided is not None:
                yield sided

    def _sides(self, event: Event, entry: Entry) -> tuple[bool, bool]:
        after = self._subset.has_table(decode.table_after(event))
        if entry.keys.kind not in ALTERS_OR_RENAMES_TABLE:
            return after, after
        return self._subset.has_table(decode.table_before(event)), after

    def _fitting(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield the entries. A new table that the predicate over its partitions does not fit gets an unfoldable entry:
        the table is read exactly then, and that read says what is wrong."""
        created = {
            entry.event_id: entry
            for entry in entries
            if entry.keys.kind is EventKind.CREATE_TABLE
            and entry.keys.table is not None
            and self._subset.predicate(entry.keys.table) is not None
        }
        unfit: dict[int, str] = {}
        for event in messages(self._journal, created) if created else ():
            name = created[event.event_id].keys.table
            assert name is not None
            try:
                with work_on(f"the look at event {event.event_id}", Undecodable):
                    table = decode.table_after(event)
                    asks = is_partitioned(table) or projects_partitions(table)
                    why = self._subset.obstacle(name, table) if asks else ""
            except (Undecodable, ObjectDefect) as error:
                why = why_of(error)
            if why:
                unfit[event.event_id] = why
        for entry in entries:
            yield unfoldable(entry, unfit[entry.event_id]) if entry.event_id in unfit else entry


def why_of(error: Undecodable | ObjectDefect) -> str:
    """Return the reason why an event can't be folded; log the traceback of a defect."""
    if isinstance(error, ObjectDefect):
        LOG.error("%s", error, exc_info=traceback_of(error))
    return str(error)


def unfoldable(entry: Entry, reason: str) -> Entry:
    return replace(entry, keys=replace(entry.keys, kind=EventKind.UNKNOWN, locations=(), defect=reason))


class SubsetScans(ForwardingScans):
    def __init__(self, scans: Scans, subset: Subset) -> None:
        super().__init__(scans)
        self._subset = subset

    def entries(self, after: int) -> Sequence[Entry]:
        narrowed_entries = (narrowed(self._subset, entry) for entry in super().entries(after))
        return [entry for entry in narrowed_entries if entry is not None]
