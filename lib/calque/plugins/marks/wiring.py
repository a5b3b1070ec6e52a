"""The live objects of marks: their store, the metastores that are told of them, and the judge of what is done."""

from __future__ import annotations

from calque.config.plugs import CallTerms
from calque.control.pause_rules import is_paused
from calque.control.status_records import position_of
from calque.plugins.marks.adapters.delta_marks import DeltaMarks
from calque.plugins.marks.adapters.partition_events import HivePartitionEvents
from calque.plugins.marks.core import TargetView
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.engine.target_view import target_view
from calque.plugins.marks.ports import ForwardingMarkStore, ForwardingPartitionEvents, MarkStore, PartitionEvents
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def mark_store(source: SourceWiring) -> MarkStore:
    """Return the store of the source's marks, the same one at each call."""
    return source.kept(wired_marks)


def wired_marks(source: SourceWiring) -> MarkStore:
    table = source.folder.table(source.places.marks)
    return source.runtime.guard.wrapped("marks", DeltaMarks(table, source.folder.table_options), ForwardingMarkStore)


def events_of_source(source: SourceWiring) -> PartitionEvents:
    """Return the calls by which the source's metastore is told of marks. calque writes nothing else at a source's
    metastore."""
    return source.runtime.guard.wrapped(
        "partition_events", HivePartitionEvents(source.client()), ForwardingPartitionEvents
    )


def events_at(target: TargetWiring) -> PartitionEvents:
    """Return the calls by which the target's metastore is told of marks. They need the lease on the target."""
    client = target.client(CallTerms(permit=target.lease().permit))
    return target.runtime.guard.wrapped("partition_events", HivePartitionEvents(client), ForwardingPartitionEvents)


def judge_at(wiring: Wiring, target: TargetWiring) -> MarkJudge:
    """Return the judge of which marks are done at the target."""
    ledger, admission, source = target.ledger(), target.admission(), target.source.side()

    def view() -> TargetView:
        return target_view(
            ledger,
            source.gaps,
            admission,
            lambda epoch: position_of(wiring, target.plug.name, epoch),
            is_paused=is_paused(wiring.control, target.plug.name),
        )

    return MarkJudge(source, mark_store(target.source), view)
