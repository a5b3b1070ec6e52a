"""The done sets of a configuration's source: marked there, looked for and waited for there or at a target."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from calque.config.units import seconds
from calque.control.pause_rules import is_paused
from calque.core.formats.partition_values import named_partition
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.hive import Table
from calque.model.names import TableName, table_name
from calque.plugins.marks.config import DONE
from calque.plugins.marks.core import Done, NotDone, OutsidePolicy, Verdict
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.engine.make import make_mark, marked_table
from calque.plugins.marks.engine.tell_metastore import names_partition, tell
from calque.plugins.marks.model import Mark, condition_of
from calque.plugins.marks.ports import MarkStore
from calque.plugins.marks.wiring import events_of_source, judge_at, mark_store
from calque.ports import Ledger
from calque.wiring.source import SourceWiring
from calque.wiring.wiring import Wiring

RETENTION = "calque.done.retention"
"""The parameter of a table that says for how long its marks are kept, for example `7d`."""
LOOK_SECONDS = 0.05
"""Seconds between two looks for news, which are a few look-ups of names each."""
LONGEST_SECONDS = 1.0
"""Seconds after which the set is judged again without news, because time passes, too, and marks expire."""


@dataclass
class DoneSets:
    """The done sets of the configuration's only source. Tables are named as at the source. Every method may raise
    `Refused` and `Unavailable`."""

    wiring: Wiring

    @cached_property
    def source(self) -> SourceWiring:
        return self.wiring.only_source()

    @property
    def store(self) -> MarkStore:
        return mark_store(self.source)

    def mark(self, name: TableName, values: Mapping[str, str]) -> Mark:
        """Record that all partitions that match the values are complete, and return the mark, which is durable then.
        Where the configuration wants it and the values name a single partition, the source's metastore is told, too; a
        failure of that is raised although the mark stands."""
        mark = make_mark(self.source.side(), self.store, name, values, self.lifetime)
        if self.wiring.config.section(DONE).metastore and names_partition(
            mark, self.source.side().catalog.table(mark.table)
        ):
            try:
                tell(events_of_source(self.source), mark.table, mark)
            except CalqueError as error:
                what = (
                    f"{mark.condition} of {mark.table} is marked, and the metastore of {self.source.plug.name} was not"
                )
                raise type(error)(f"{what} told", str(error), "Mark it again to tell it") from error
        return mark

    def lifetime(self, table: Table) -> float:
        """Return the seconds for which marks of the table are kept: by the table's own parameter, else by the
        configuration. Raises `Refused` where the parameter is no duration."""
        name = table_name(table.database, table.name)
        said = (table.parameters or {}).get(RETENTION)
        if said is None:
            return self.wiring.config.section(DONE).lifetimes()(name)
        try:
            return seconds(said)
        except Refused as refused:
            what = f"The parameter {RETENTION} says no duration"
            raise Refused(f"{name} can't be marked", f"{what}: {refused.what}", "Set it to e.g. '7d'") from None

    def why_no_lifetime(self, table: Table) -> str:
        """Say why it is not known how long marks of the table are kept; empty where it is known."""
        try:
            self.lifetime(table)
        except Refused as refused:
            return refused.why
        return ""

    def verdict(self, name: TableName, values: Mapping[str, str], target: str | None = None) -> Verdict:
        """Judge whether the set is done at the target, or, without one, at the source."""
        name = table_name(*name)
        return self.judge(target).verdict(name, self.question(name, values, target))

    def wait(
        self,
        name: TableName,
        values: Mapping[str, str],
        target: str | None = None,
        timeout: float | None = None,
        told_timeout: float | None = None,
    ) -> Done:
        """Wait until the set is done, even if it is marked only later, and return the verdict. Raises `NotDoneInTime`
        after `timeout` seconds, and `Refused` where the target does not take the table. `told_timeout` are the seconds
        that the error names, for a caller who waits several times; None for `timeout`."""
        name, judge = table_name(*name), self.judge(target)
        partition = self.question(name, values, target)
        deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
        ledger = self.wiring.ledger(target) if target is not None else None
        while True:
            news, due = self.news(target, ledger), time.monotonic() + LONGEST_SECONDS
            try:
                verdict: Verdict | Unavailable = judge.verdict(name, partition)
            except Unavailable as problem:
                verdict = problem
            if isinstance(verdict, Done):
                return verdict
            if isinstance(verdict, OutsidePolicy):
                raise outside(verdict, target)
            while time.monotonic() < min(due, deadline) and self.news(target, ledger) == news:
                time.sleep(max(0.0, min(LOOK_SECONDS, deadline - time.monotonic())))
            if time.monotonic() >= deadline:
                raise late(name, partition, target, verdict, told_timeout or timeout or 0.0)

    def marks(self, name: TableName | None = None, target: str | None = None) -> Iterator[Done]:
        """Yield the marks that have not expired and whose tables still exist, in the order in which they were made.
        With `name`, only those of that table; with `target`, only those that are done there."""
        judge, now_ns = self.judge(target), self.source.side().clock.now_ns()
        known_marks = [mark for mark in self.store.after(0) if mark.expires_at_ns > now_ns]
        wanted_name = table_name(*name) if name is not None else None
        for verdict in judge.of(known_marks):
            if isinstance(verdict, Done) and wanted_name in (None, verdict.table):
                yield verdict

    def judge(self, target: str | None) -> MarkJudge:
        """Return the judge of what is done at the target, or, without one, at the source. Raises `Refused` for an
        unknown target."""
        if target is None:
            return MarkJudge(self.source.side(), self.store)
        return judge_at(self.wiring, self.wiring.target(target))

    def question(self, name: TableName, values: Mapping[str, str], target: str | None) -> Mapping[str, str]:
        """Return the keys and values as marks have them, checked against the table. Where the source does not know the
        table any more, or does not answer while a target is asked about, they are taken as they are written."""
        try:
            table = marked_table(self.source.side(), name)
        except Unavailable:
            if target is None:
                raise
        except Refused:
            if not self.judge(target).knows(name):
                raise
        else:
            return named_partition(table, values, "A set")
        return {key.lower(): value for key, value in values.items()}

    def news(self, target: str | None, ledger: Ledger | None) -> tuple[object, ...]:
        """Return a value that changes whenever a verdict may change, except by time and by changes at the source that
        the journal does not have yet. `ledger` is the target's, opened once for a whole wait."""
        changes = (self.store.last(), self.source.side().journal.last())
        if target is None or ledger is None:
            return changes
        epoch = ledger.last_epoch()
        return *changes, epoch.epoch if epoch is not None else None, is_paused(self.wiring.control, target)


def undone(name: TableName, partition: Mapping[str, str], target: str | None, verdict: NotDone) -> Unavailable:
    """Return an error that says that the set is not done, and why."""
    place = f" at {target}" if target is not None else ""
    todo = "Wait for it with `calque done wait`" if verdict.state != "ended" else "Mark the new one"
    return Unavailable(f"{condition_of(partition)} of {name} is not done{place}", verdict.reason, todo)


def outside(verdict: OutsidePolicy, target: str | None) -> Refused:
    why = "Its policy leaves it out"
    return Refused(
        f"{target} does not take {verdict.table}",
        why,
        'Change "include", "exclude" or "partitions", or name another target',
    )


class NotDoneInTime(Unavailable):
    """The error of a set that is not done when the time to wait for it is over."""


def late(
    name: TableName, partition: Mapping[str, str], target: str | None, verdict: NotDone | Unavailable, timeout: float
) -> NotDoneInTime:
    place = f" at {target}" if target is not None else ""
    why = verdict.reason if isinstance(verdict, NotDone) else str(verdict)
    what = f"{condition_of(partition)} of {name} is not done{place} after {timeout:g} s"
    return NotDoneInTime(what, why, "Look at `calque status`, or wait longer")
