"""The making of a mark: a record that the partitions of a table that match some key values are complete.

The mark takes its place behind the newest event of the source's log. The log is asked after the table was read, so that
the mark follows every partition that it speaks of. The mark means the table that has the name at that place. So the log
must show that the name stood for one table between the two looks.

    The log's newest event is 80 when `t` is read. Events 81 and 82 drop `t` and create another `t`. A mark behind 82
    would say of the new `t` that it is complete, although the old one was read: so the mark is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calque.core.events.keys import entry_of
from calque.core.formats.partition_values import named_partition
from calque.engine.sides.journal_reads import newest
from calque.engine.sides.log_reads import events_after
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused, Unavailable, nearest
from calque.model.hive import Table, is_delta, is_view
from calque.model.names import EventId, TableName, table_name
from calque.plugins.marks.core import name_after
from calque.plugins.marks.model import Mark
from calque.plugins.marks.ports import MarkStore

ATTEMPTS = 100
PAUSE_SECONDS = 0.01
MICROSECOND_NS = 1000


def make_mark(
    source: SourceSide,
    marks: MarkStore,
    name: TableName,
    values: Mapping[str, str],
    lifetime: Callable[[Table], float],
) -> Mark:
    """Make a mark and return it, durable by then. `values` are those of some partition keys; `lifetime` returns for how
    many seconds marks of a table are kept. Raises `Refused` for a table, a key or a value that can't be marked, and
    `Unavailable`."""
    name = table_name(*name)
    for _ in range(ATTEMPTS):
        number, gap = marks.last(), newest(source.gaps)
        before = marks.after(number - 1) if number else ()
        captured, begun = source.journal.last() or 0, source.log.current()
        table = marked_table(source, name)
        partition = named_partition(table, values, "A mark")
        event_id = source.log.current()
        if not stays(source, name, begun, event_id):
            continue
        require_history(source.name, event_id, captured, *(mark.event_id for mark in before if mark.after_gap == gap))
        now_ns = source.clock.now_ns() // MICROSECOND_NS * MICROSECOND_NS
        expires_ns = now_ns + int(lifetime(table) * 1e9) // MICROSECOND_NS * MICROSECOND_NS
        mark = Mark(number + 1, name, f"r{event_id}", partition, event_id, now_ns, expires_ns, gap)
        if marks.add(mark):
            return mark
        source.clock.sleep(PAUSE_SECONDS)
    raise Unavailable(
        f"{name} could not be marked",
        f"The table, or the marks of {source.name}, changed {ATTEMPTS} times in a row",
        "Try again",
    )


def marked_table(source: SourceSide, name: TableName) -> Table:
    """Return the table as the source has it. Raises `Refused` for a table that is not there, a view, and a Delta table,
    which have no partitions to be marked."""
    table = source.catalog.table(name)
    if table is None:
        databases = [database.lower() for database in source.catalog.databases()]
        if name.database not in databases:
            why = nearest(name.database, databases)
            raise Refused(f"{source.name} has no database {name.database}", why, "Name a table as at the source")
        tables = [f"{name.database}.{table}" for table in source.catalog.tables(name.database)]
        raise Refused(f"{source.name} has no table {name}", nearest(str(name), tables), "Name a table of the source")
    if is_view(table):
        raise Refused(f"{name} is a view", "A mark speaks of partitions", "Mark the table that it shows")
    if is_delta(table):
        why = "Its partitions are in its own log, and not in the metastore"
        raise Refused(f"{name} is a Delta table", why, "Ask for its version instead")
    return table


def stays(source: SourceSide, name: TableName, after: EventId, upto: EventId) -> bool:
    """Tell by the log whether the name stood for one table in the events after `after` up to `upto`."""
    events = events_after(source.log, after, upto)
    return all(name_after(name, entry_of(event)) == name for event in events)


def require_history(source: str, event_id: EventId, *earlier_events: EventId) -> None:
    """Check that the log did not go back. Raises `Unavailable` where its newest event `event_id` is below one that was
    known before."""
    newest_event = max(earlier_events)
    if event_id < newest_event:
        raise Unavailable(
            f"The log of {source} went back",
            f"Its newest event is {event_id}, and event {newest_event} was there before",
            "Let `calque run` take up where the log goes on, and try again",
        )
