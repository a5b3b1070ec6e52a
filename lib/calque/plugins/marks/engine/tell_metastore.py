"""The telling of metastores that single partitions are done (LOAD_DONE), for marks that name all keys of their
table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass

from calque.core.policy.admit import Admission
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.hive import Table
from calque.model.names import TableName
from calque.plugins.marks.core import Done, NotDone, Verdict
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.model import Mark
from calque.plugins.marks.ports import PartitionEvents
from calque.ports import CatalogReader
from calque.ports.records import Records

LOG = logging.getLogger(__name__)
SECONDS = 1.0
"""Seconds between two looks for marks and epochs."""


def names_partition(mark: Mark, table: Table | None) -> bool:
    """Tell whether the mark is of a single partition: it names all keys of the table."""
    keys = (table.partition_keys or ()) if table is not None else ()
    return bool(keys) and {key.name.lower() for key in keys} == mark.partition.keys()


def tell(events: PartitionEvents, name: TableName, mark: Mark) -> None:
    """Tell the metastore that the mark's partition is done, unless it knows it. Raises `Refused` where the metastore
    does not take the call, as for a table that is gone, and `Unavailable`."""
    if not events.is_done(name, mark.partition):
        events.mark_done(name, mark.partition)


@dataclass
class DoneEventWriter:
    """A part beside a target's windows that tells the target's metastore of each mark as soon as it is done there. The
    record `record` says which marks were told. A process that dies before it is written makes its successor look at the
    same marks again; the metastore knows them, so nothing is told twice."""

    judge: MarkJudge
    catalog: CatalogReader
    events: PartitionEvents
    admission: Admission
    records: Records
    record: str

    def run_once(self) -> None:
        """Tell of all marks that are done by now. Raises `Unavailable`."""
        number, open_numbers = self.told()
        newest = self.judge.marks.last()
        if newest == number and not open_numbers:
            return
        first = min([number + 1, *open_numbers])
        marks = [
            mark for mark in self.judge.marks.after(first - 1) if mark.number > number or mark.number in open_numbers
        ]
        still_open = []
        for mark, verdict in zip(marks, self.judge.of(marks), strict=True):
            if isinstance(verdict, Done):
                self.tell(verdict)
            elif waits(verdict):
                still_open.append(mark.number)
        if (newest, still_open) != (number, sorted(open_numbers)):
            self.records.put(self.record, {"number": newest, "open": still_open})

    def told(self) -> tuple[int, Collection[int]]:
        """Return the last mark that was looked at, and the numbers of the marks before it that are not done yet."""
        match self.records.read(self.record):
            case {"number": int(number), "open": list(numbers)}:
                return number, {int(one) for one in numbers if isinstance(one, int)}
        return 0, ()

    def tell(self, done: Done) -> None:
        name = self.admission.name_at_target(done.table)
        table = self.catalog.table(name)
        if not names_partition(done.mark, table):
            return
        try:
            tell(self.events, name, done.mark)
        except Refused as refused:
            LOG.warning("%s is done, and the target's metastore was not told: %s", done.mark.condition, refused)

    def keep(self, stopping: threading.Event) -> None:
        """Tell of marks every `SECONDS`, until `stopping` is set."""
        while not stopping.wait(SECONDS):
            try:
                self.run_once()
            except Unavailable as error:
                LOG.info("the target's metastore is not told of marks yet: %s", error)
            except CalqueError as error:
                LOG.warning("the target's metastore is not told of marks: %s", error)


def waits(verdict: Verdict) -> bool:
    return isinstance(verdict, NotDone) and verdict.state not in ("ended", "lost")
