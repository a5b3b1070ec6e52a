"""Beside a target's windows: its metastore is told of marks that are done there."""

from __future__ import annotations

from calque.engine.sides.sides import SourceSide
from calque.model.names import EventId
from calque.plugins.marks.config import DONE
from calque.plugins.marks.engine.follow_tables import remember
from calque.plugins.marks.engine.tell_metastore import TargetTeller
from calque.plugins.marks.wiring import events_at, judge_at, mark_store
from calque.streams.followers import Follower, Work
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def tell_of_marks(wiring: Wiring, target: TargetWiring) -> Work | None:
    """Where the configuration wants it, and the target is a metastore."""
    if not wiring.config.section(DONE).metastore or target.plug.catalog is not None:
        return None
    side = target.side()
    events = events_at(target)
    return TargetTeller(
        judge_at(wiring, target), side.catalog, events, side.admission, wiring.control, target.places.marks_record
    ).keep


def remember_events(source: SourceWiring, side: SourceSide, _begin: EventId) -> None:
    """What events say of marked tables, before they are forgotten; marks that have expired go."""
    remember(side, mark_store(source))


RETENTION = RetentionKind(before_events=remember_events)
FOLLOWER = Follower(name="marks", ended="is told of no marks any more", work=tell_of_marks)
