"""A table's chain at a target, out of journal entries and rows of the ledger."""

from __future__ import annotations

from calque.core.records.table_chain import MAX_EVENT, Fate, NameSpan, chain, names_backwards
from calque.model.files import File
from calque.model.journal import Entry, EventKind, Keys
from calque.model.ledger import Bridge, Epoch, ObjectRow
from calque.model.names import TableName

T, OLD = TableName("sales", "t"), TableName("sales", "old")


def entry(
    event_id: int, kind: EventKind = EventKind.ADD_PARTITIONS, other: TableName | None = None, **keys: bool
) -> Entry:
    return Entry(event_id, 1000 + event_id, kind.value.upper(), Keys(kind, T, other, **keys))


def row(event_id: int, change: str = "add_partition", files: int = 1) -> ObjectRow:
    made = tuple(File(f"f{number}", 10, 0) for number in range(files))
    return ObjectRow(*T, "ds=1", "20", event_id, change, files=made)


SPANS = [NameSpan(T, -1, MAX_EVENT)]
EPOCHS = [Epoch(1, 20, 0, "one", "window"), Epoch(2, 45, 20, "two", "window", bridges=(Bridge("sales.t", 20, 40),))]


def test_a_hop_passes_over_the_states_between_its_ends() -> None:
    links = chain([entry(20), entry(30), entry(40), entry(50)], [row(20), row(40), row(40)], EPOCHS, SPANS, 45, "")
    assert [(link.event_id, link.fate, link.why) for link in links] == [
        (20, Fate.SHOWN, ""),
        (30, Fate.PASSED_OVER, "one hop goes from event 20 to event 40"),
        (40, Fate.SHOWN, ""),
        (50, Fate.WAITING, "its window has not come yet"),
    ]
    assert [(link.epoch, link.published_at, link.bridge) for link in links[::2]] == [
        (1, "one", False),
        (2, "two", True),
    ]
    assert (links[1].epoch, links[1].published_at, links[3].epoch) == (2, "two", None)
    assert (links[2].changes, links[2].files, links[2].bytes) == ({"add_partition": 2}, 2, 20)


def test_what_waits_says_why_and_what_the_ledger_forgot_is_no_claim() -> None:
    links = chain([entry(10), entry(20), entry(30)], [row(20)], EPOCHS, SPANS, 20, "set aside")
    assert [(link.fate, link.why) for link in links] == [
        (Fate.BEFORE, "the ledger remembers nothing of the table so far back"),
        (Fate.SHOWN, ""),
        (Fate.WAITING, "set aside"),
    ]


def test_an_event_from_before_the_first_remembered_epoch_has_none() -> None:
    links = chain([entry(10), entry(30)], [row(40)], EPOCHS[1:], SPANS, 45, "")
    assert [(link.fate, link.epoch) for link in links] == [(Fate.BEFORE, None), (Fate.BEFORE, 2), (Fate.SHOWN, 2)]


def test_an_exact_read_is_a_state_without_an_event_and_statistics_make_none() -> None:
    links = chain(
        [entry(25, EventKind.ALTER_TABLE, facets_only=True)], [row(22, "create_table", 0)], EPOCHS, SPANS, 30, ""
    )
    assert [(link.event_id, link.kind, link.fate) for link in links] == [
        (22, "read", Fate.SHOWN),
        (25, "alter_table", Fate.PASSED_OVER),
    ]
    assert links[1].why == "it changes statistics alone, which ride on the next call"


def test_a_chain_goes_back_through_the_names_that_the_table_had() -> None:
    before = Entry(10, 0, "", Keys(EventKind.CREATE_TABLE, OLD))
    foreign = Entry(15, 0, "", Keys(EventKind.CREATE_TABLE, T))
    renamed, after = entry(20, EventKind.RENAME_TABLE, OLD), entry(30)
    found, spans = names_backwards([before, foreign, renamed, after], T)
    assert (found, spans) == ([before, renamed, after], [NameSpan(T, 19, MAX_EVENT), NameSpan(OLD, -1, 19)])
    of_another = [row(15), row(30)]
    assert [link.event_id for link in chain(found, of_another, EPOCHS, spans, 45, "") if link.changes] == [30]


def test_a_name_that_went_to_another_table_says_where_its_table_went() -> None:
    gone = Entry(20, 0, "", Keys(EventKind.RENAME_TABLE, OLD, T))
    found, spans = names_backwards([entry(10), gone, entry(30, EventKind.CREATE_TABLE)], T)
    links = chain(found, [row(10), row(20, "rename_away", 0), row(30)], EPOCHS, spans, 45, "")
    assert [(link.event_id, link.fate, link.now) for link in links] == [
        (10, Fate.SHOWN, ""),
        (20, Fate.SHOWN, "sales.old"),
        (30, Fate.SHOWN, ""),
    ]
