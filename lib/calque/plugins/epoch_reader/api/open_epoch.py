"""The tables of a target exactly as of an epoch, for readers: `open_epoch`.

The ledger alone says which files each table had, and how they are read. The target's metastore is not asked, so changes
that are under way there do not show. Files are never changed in place, and while an epoch is held `sweep` removes none
of its files.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING

from calque.control.epoch_holds import hold
from calque.core.events.kinds import PROJECTED
from calque.core.formats.definition import Definition, definition_of, format_of
from calque.core.formats.iceberg import METADATA
from calque.core.formats.layout import join
from calque.core.records.contents import Content, contents, line_of
from calque.engine.sweep.target_position import published_ns
from calque.errors import Refused, Unavailable, nearest
from calque.model.hive import VIEW_TYPES
from calque.model.ledger import Epoch, ObjectRow
from calque.model.names import DEFAULT_PARTITION, EventId, TableName, partition_values, table_name
from calque.plugins.epoch_reader.api.files import Directory, TableFiles
from calque.plugins.epoch_reader.wiring import one_target
from calque.wiring.wiring import Wiring

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

HOLD = 3600.0


def opened_epoch(
    wiring: Wiring, target: str | None, tables: Collection[str], at: EventId | None, hold: float = HOLD
) -> OpenEpoch:
    """Open an epoch of the target; `calque.open_epoch` explains the parameters."""
    wiring.config.require_source()
    name = one_target(wiring.config, target)
    return OpenEpoch.of(wiring, name, {table.lower() for table in tables}, at, hold)


@dataclass(slots=True)
class OpenEpoch:
    """An epoch of a target that is held open. Tables are called by their names at the source. Use it as a context, or
    `close` it."""

    wiring: Wiring
    target: str
    epoch: Epoch
    record: str = ""
    _headers: dict[TableName, Content] = field(default_factory=dict)

    @staticmethod
    def of(wiring: Wiring, target: str, tables: Set[str], event_id: EventId | None, seconds: float) -> OpenEpoch:
        now = time.time_ns()
        # All epochs are held (since 0) until it is known which one is opened.
        record = hold(wiring.control, target, 0, now + int(seconds * 1e9)) if seconds else ""
        try:
            ledger = wiring.ledger(target)
            epochs = ledger.epochs()
            epoch = chosen(epochs, target, tables, event_id, now - int(wiring.config.target(target).keys.grace * 1e9))
            if record:
                wiring.control.put(record, {"since": published_ns(epoch), "until": now + int(seconds * 1e9)})
            rows = ledger.headers(epoch.epoch)
        except BaseException:
            if record:
                wiring.control.remove(record)
            raise
        admission = wiring.config.target(target).admission()
        all_contents = contents(line_of(index, row) for index, row in enumerate(rows))
        taken_contents = {name: content for name, content in all_contents.items() if admission.takes(name)}
        return OpenEpoch(wiring, target, epoch, record, taken_contents)

    def __enter__(self) -> OpenEpoch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop holding the epoch, so that `sweep` may remove its files."""
        if self.record:
            self.wiring.control.remove(self.record)
            self.record = ""

    @property
    def number(self) -> int:
        """The epoch's number in the ledger."""
        return self.epoch.epoch

    @property
    def event_id(self) -> EventId:
        """The source's event that its tables show."""
        return self.epoch.event_id

    def tables(self) -> tuple[str, ...]:
        """Return the tables and views that the epoch covers, sorted, as `database.table`."""
        aside = {*self.epoch.quarantined, *self.epoch.set_aside}
        return tuple(sorted(str(name) for name in self._headers if str(name) not in aside))

    def files(self, table: str) -> TableFiles:
        """Return the files of the table, and how they are read. Raises `Refused` where the ledger does not tell them,
        or the epoch does not cover the table."""
        name = table_name(*table.partition(".")[::2])
        header = self._headers.get(name)
        self._require_covered(name, header)
        assert header is not None
        names = {line.name for line in header.table.history} | {name}
        rows = self.wiring.ledger(self.target).rows_of(names, self.number)
        content = contents(line_of(index, row) for index, row in enumerate(rows)).get(name)
        if not self.wiring.config.target(self.target).admission().copies(name):
            raise Refused(
                f"{name} can't be read as of event {self.event_id}",
                'With data = "none" its files stay at the source, where they change',
                "Read it through the metastore",
            )
        if content is None or not content.is_complete or content.table.definition is None:
            raise Refused(
                f"Which files {name} has at event {self.event_id} is not recorded",
                "The target had it before calque came, or an earlier version wrote the ledger, or a crash met a gap",
                f"Say calque repair --target {self.target} --tables {name}, and open a later epoch",
            )
        return table_files(name, content, rows)

    def arrow(self, table: str) -> ds.Dataset:
        """Return the table as a `pyarrow.dataset.Dataset`; its `.to_table()` reads it. Raises `Refused` as `files`
        does, and for formats and types that Arrow can't read."""
        from calque.plugins.epoch_reader.api.arrow_dataset import dataset_of

        return dataset_of(self.files(table), self.wiring.target(self.target).systems())

    def spark(self, session: SparkSession, table: str) -> DataFrame:
        """Return the table as a DataFrame of that session, which must reach the warehouse. Raises `Refused` as `files`
        does, and for formats that Spark's own readers do not know."""
        from calque.plugins.epoch_reader.api.spark_frame import frame_of

        return frame_of(self.files(table), session)

    def _require_covered(self, name: TableName, header: Content | None) -> None:
        if str(name) in {*self.epoch.quarantined, *self.epoch.set_aside}:
            why = "was quarantined" if str(name) in self.epoch.quarantined else "was being read, copied or held back"
            raise Refused(
                f"{name} is no part of epoch {self.number} of {self.target}",
                f"It {why} then, and showed another event",
                "Open a later epoch, once `calque status` lists it as live",
            )
        if header is None:
            raise Refused(
                f"There is no table {name} in epoch {self.number} of {self.target}",
                nearest(str(name), self.tables()) or "It has none",
                "Use the name that the table has at the source",
            )


def chosen(epochs: Sequence[Epoch], target: str, tables: Set[str], event_id: EventId | None, before_ns: int) -> Epoch:
    """Choose the newest epoch at or below the event that covers all of `tables`, among those that `sweep` leaves: files
    that were replaced before `before_ns`, in nanoseconds since 1970, may be gone. Raises `Unavailable` where an epoch
    may still come, `Refused` where it can't."""
    if not epochs:
        raise Unavailable(f"{target} has no epochs yet", "Its bootstrap is not through", "Wait for it: calque wait")
    last = epochs[-1]
    if event_id is not None and event_id > last.event_id:
        raise Unavailable(
            f"{target} has not reached event {event_id}",
            f"Its newest epoch is of event {last.event_id}",
            f"Say calque wait --target {target} --event-id {event_id}",
        )
    kept_epochs = [epoch for epoch, after in pairwise(epochs) if published_ns(after) > before_ns] + [last]
    early_epochs = [epoch for epoch in kept_epochs if event_id is None or epoch.event_id <= event_id]
    if not early_epochs:
        raise Refused(
            f"{target} has no epoch at or below event {event_id} any more",
            "Replaced files are removed after `grace`",
            f"Open one of event {kept_epochs[0].event_id} or later, or give the target a longer grace",
        )
    for epoch in reversed(early_epochs):
        if not tables & {*epoch.quarantined, *epoch.set_aside}:
            return epoch
    missing = sorted(tables & {*early_epochs[-1].quarantined, *early_epochs[-1].set_aside})
    raise Unavailable(
        f"{target} keeps no epoch that covers all of {', '.join(sorted(tables))}",
        f"In the newest one these showed another event: {', '.join(missing)}",
        "Try again later; calque status says what they wait for",
    )


def why_not_by_files(definition: Definition) -> str:
    """Say why the rows of an ACID table do not lie in the files that the ledger has; empty where they do."""
    parameters = definition.parameters
    if parameters.get("transactional", "").lower() == "true":
        return "the write ids of a reader say which of them count"
    return "the log of its replica has other files" if "calque.rows" in parameters else ""


def table_files(name: TableName, content: Content, rows: Sequence[ObjectRow]) -> TableFiles:
    assert content.table.definition is not None
    definition_text = rows[content.table.definition.index].definition
    definition = definition_of(definition_text)
    if definition.type in VIEW_TYPES:
        raise Refused(f"{name} is a view", "It has a text instead of files", "Read the tables that it shows")
    if metadata := definition.parameters.get(METADATA):
        raise Refused(
            f"{name} is an Iceberg table", "calque does not read these", f"Read its metadata file {metadata} as a table"
        )
    if why := why_not_by_files(definition):
        raise Refused(f"{name} can't be read by its files", f"It is an ACID table, and {why}", "Read the table itself")
    if definition.keys and not content.partitions and content.table.files and rows[content.table.files.index].files:
        raise Refused(
            f"{name} can't be read as partitions", PROJECTED, "Read it with the engine that makes up its partitions"
        )
    parts = content.partitions.items() if definition.keys else [("", content.table)]
    directories = []
    for partition, part in sorted(parts):
        if part.files is None or part.definition is None:
            raise Refused(
                f"Which files {name} {partition} has is not recorded",
                "An earlier version of calque wrote it",
                f"Say calque repair --tables {name}, and open a later epoch",
            )
        row = rows[part.files.index]
        values = (
            tuple(None if value == DEFAULT_PARTITION else value for value in partition_values(partition))
            if partition
            else ()
        )
        files = () if row.delta_version is not None else tuple(join(row.location, file.path) for file in row.files)
        directories.append(
            Directory(row.location, values, files, format_of(rows[part.definition.index].definition), row.delta_version)
        )
    return TableFiles(str(name), definition, tuple(directories))
