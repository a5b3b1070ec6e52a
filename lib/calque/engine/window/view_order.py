"""The order of views and tables inside a window: views that go, before the tables that they showed; views that come,
after theirs. Within one chain the events' own order does that."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from calque.core.events import decode
from calque.core.events.effects import DEFINES_TABLE
from calque.core.images.view_engines import current_database
from calque.model.hive import is_view
from calque.model.journal import Entry, EventKind, TableShape
from calque.model.names import TableName
from calque.ports import Journal


class ViewWave(IntEnum):
    """The waves of a window in their order; groups of one wave go side by side."""

    GOING_VIEWS = 0
    TABLES = 1
    VIEWS = 2


def wave_of(group: Sequence[Entry]) -> ViewWave:
    if all(entry.keys.shape is not TableShape.VIEW for entry in group):
        return ViewWave.TABLES
    return (
        ViewWave.GOING_VIEWS if is_of_views(group) and group[-1].keys.kind is EventKind.DROP_TABLE else ViewWave.VIEWS
    )


def is_of_views(group: Sequence[Entry]) -> bool:
    """Tell whether the group, which has a view, has no entry of a table."""
    return {entry.keys.shape for entry in group} <= {TableShape.VIEW, TableShape.NOT_SAID}


def upto_drop(group: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries of a group of views up to its last drop, which come before the views' tables go. Empty where
    the group drops no view that comes back."""
    if wave_of(group) is not ViewWave.VIEWS or not is_of_views(group):
        return ()
    drops = [index for index, entry in enumerate(group) if entry.keys.kind is EventKind.DROP_TABLE]
    return group[: drops[-1] + 1] if drops else ()


def bases_of(journal: Journal, group: Sequence[Entry]) -> set[TableName]:
    """Return the tables that a view shows by the newest definition in the group; none where the group defines none.
    Raises `Undecodable` where that definition can't be read."""
    of_views = (entry for entry in group if entry.keys.shape is TableShape.VIEW)
    defining = [entry.event_id for entry in of_views if entry.keys.kind in DEFINES_TABLE]
    if not defining:
        return set()
    view = decode.table_after(journal.events(defining[-1:])[defining[-1]])
    base_tables: set[TableName] = set()

    def note(name: TableName) -> TableName:
        base_tables.add(name)
        return name

    if is_view(view):
        from calque.core.images.views import rewrite_names

        rewrite_names(view.view_expanded_text or view.view_original_text or "", current_database(view), note)
    return base_tables
