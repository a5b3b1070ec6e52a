"""The work of marks within a running process: telling targets' metastores of them, and keeping them from being lost
when events are forgotten."""

from __future__ import annotations

from calque.engine.sides.sides import SourceSide
from calque.model.names import EventId
from calque.plugins.marks.config import DONE
from calque.plugins.marks.engine.follow_tables import remember
from calque.plugins.marks.engine.tell_metastore import DoneEventWriter
from calque.plugins.marks.wiring import events_at, judge_at, mark_store
from calque.streams.background import BackgroundWork
from calque.streams.followers import Follower
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def tell_of_marks(wiring: Wiring, target: TargetWiring) -> BackgroundWork | None:
    """Return the work that tells the target's metastore of marks that are done there; None where the configuration does
    not want it, and for a target that is no metastore."""
    if not wiring.config.section(DONE).metastore or target.plug.catalog is not None:
        return None
    side = target.side()
    events = events_at(target)
    return DoneEventWriter(
        judge_at(wiring, target), side.catalog, events, side.admission, wiring.control, target.places.marks_record
    ).keep


def remember_events(source: SourceWiring, side: SourceSide, _begin: EventId) -> None:
    """Record what the source's events say of marked tables, before these events are forgotten, and forget marks that
    have expired."""
    remember(side, mark_store(source))


RETENTION = RetentionKind(before_events=remember_events)
FOLLOWER = Follower(name="marks", ended="is told of no marks any more", work=tell_of_marks)
