"""`core.states.fold.groups`: tables share a group exactly where a way of renames leads from one to the other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from calque.core.states.fold import groups, groups_of_databases, names_in
from calque.model.journal import Entry, EventKind, Keys
from calque.model.names import TableName

NAMES = [TableName(database, table) for database in "de" for table in "abcd"]
EVENTS = st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES)), max_size=40)


def entries_of(events: list[tuple[TableName, TableName | None]]) -> list[Entry]:
    """An insert into a table, or a rename to it from another name."""
    return [
        Entry(
            event_id, 0, "", Keys(EventKind.INSERT if was is None else EventKind.RENAME_TABLE, table=table, other=was)
        )
        for event_id, (table, was) in enumerate(events, 1)
    ]


@settings(print_blob=True, deadline=None)
@given(EVENTS)
def test_groups_are_the_parts_of_the_log_that_renames_connect(
    events: list[tuple[TableName, TableName | None]],
) -> None:
    entries = entries_of(events)
    linked: dict[TableName, set[TableName]] = {name: {name} for name in NAMES}
    for table, was in events:
        if was is not None and linked[table] is not linked[was]:
            linked[table] |= linked[was]
            linked |= dict.fromkeys(linked[was], linked[table])
    wanted: dict[frozenset[TableName], list[Entry]] = {}
    for entry in entries:
        assert entry.keys.table is not None
        wanted.setdefault(frozenset(linked[entry.keys.table]), []).append(entry)
    assert groups(entries) == list(wanted.values())
    databases = groups_of_databases(entries)
    assert sorted((entry for group in databases for entry in group), key=lambda entry: entry.event_id) == entries
    assert len(databases) == len({frozenset(name.database for name in names_in(group)) for group in databases})


@settings(print_blob=True, deadline=None)
@given(EVENTS)
def test_the_names_of_a_group_are_those_of_its_entries_and_no_others(
    events: list[tuple[TableName, TableName | None]],
) -> None:
    assert names_in(entries_of(events)) == {name for event in events for name in event if name is not None}
