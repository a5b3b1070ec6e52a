"""`ports.transactions`: what every metastore with ACID tables does, in memory and real."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from calque.adapters.metastore.transactions import NAMES_AT_ONCE
from calque.core.acid.write_ids import CONVERTED, NONE, ValidWriteIds, WriteIdFold
from calque.engine.sides.sides import TargetTransactions
from calque.engine.target.native_ability import why_not_native
from calque.errors import Refused, Unavailable
from calque.model.hive import Database
from calque.model.journal import Event
from calque.model.names import OURS, TableName
from calque.model.transactions import CommitMark
from calque.ports import Conflict
from support.runs.seeds import seed
from support.storages import any_storage
from support.worlds.metastore_worlds import World
from support.worlds.transaction_worlds import FULL_ACID, INSERT_ONLY, WORLDS, TransactionWorld, transaction_world

pytestmark = pytest.mark.parametrize("world", WORLDS, indirect=True)
MARK = "_meta_calque.event"
STEPS = 120


@pytest.fixture
def acid(world: World) -> TransactionWorld:
    return transaction_world(world)


# What readers have


def test_a_table_that_no_transaction_wrote_or_that_is_missing_has_no_write_ids(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    missing = TableName(name.database, "missing")
    assert acid.reader.valid_write_ids([name, missing]) == {name: NONE, missing: NONE}
    assert acid.reader.valid_write_ids([]) == {}


def test_write_ids_are_open_then_valid_or_aborted(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.written(name)
    aborted, still_open, committed = acid.plain.open(3)
    assert acid.plain.allocate(name, [aborted, still_open, committed]) == {aborted: 2, still_open: 3, committed: 4}
    assert acid.valid(name) == ValidWriteIds(4, frozenset({2, 3, 4}))
    acid.plain.abort(aborted)
    acid.plain.commit(committed)
    assert acid.valid(name) == ValidWriteIds(4, frozenset({3}), frozenset({2}))
    acid.plain.commit(still_open)
    assert acid.valid(name) == ValidWriteIds(4, aborted=frozenset({2}))


def test_a_transaction_has_one_write_id_of_each_table(acid: TransactionWorld) -> None:
    first, second = acid.created("orders", "items")
    [transaction] = acid.plain.open()
    for _ in range(2):
        assert acid.plain.allocate(first, [transaction]) == {transaction: 1}
        assert acid.plain.allocate(second, [transaction]) == {transaction: 1}
    acid.plain.commit(transaction)
    assert (acid.valid(first), acid.valid(second)) == (ValidWriteIds(1), ValidWriteIds(1))


def test_where_nothing_is_committed_a_reader_may_be_told_of_the_lowest_write_id_alone(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    transactions = acid.plain.open(2)
    acid.plain.allocate(name, transactions)
    told = frozenset({1}) if acid.base.habits.lowest_invalid else frozenset({1, 2})
    assert acid.valid(name) == ValidWriteIds(max(told), told)
    acid.plain.commit(transactions[1])
    assert acid.valid(name) == ValidWriteIds(2, frozenset({1}))


def test_open_transactions_are_told_apart_from_ended_ones(acid: TransactionWorld) -> None:
    aborted, still_open, committed = acid.plain.open(3)
    acid.plain.abort(aborted)
    acid.plain.commit(committed)
    found = acid.reader.open_transactions()
    assert found.high >= committed
    assert (aborted in found.aborted, still_open in found.open) == (True, True)
    assert [found.is_committed(one) for one in (aborted, still_open, committed)] == [False, False, True]
    assert not found.is_committed(found.high + 1)
    acid.plain.commit(still_open)


def test_more_tables_than_one_call_takes_are_all_read(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.written(name)
    missing = [TableName(name.database, f"t{number}") for number in range(NAMES_AT_ONCE)]
    found = acid.reader.valid_write_ids([*missing, name])
    assert found == {**dict.fromkeys(missing, NONE), name: ValidWriteIds(1)}


def test_a_commit_over_two_tables_is_one_moment_for_readers(acid: TransactionWorld) -> None:
    names = acid.created("orders", "items")
    failures: list[Exception] = []

    def write() -> None:
        try:
            for _ in range(30):
                acid.written(*names)
        except Exception as failure:  # noqa: BLE001 - told below
            failures.append(failure)

    thread = threading.Thread(target=write)
    thread.start()
    seen = [0]
    while thread.is_alive():
        tops = [readable(ids).high for ids in acid.reader.valid_write_ids(names).values()]
        assert tops[0] == tops[1]
        seen.append(tops[0])
    thread.join()
    assert not failures
    assert seen == sorted(seen)
    assert acid.reader.valid_write_ids(names) == dict.fromkeys(names, ValidWriteIds(30))


# Replicated transactions


def test_a_number_opens_one_transaction_as_long_as_it_is_open(acid: TransactionWorld) -> None:
    replicated, other = acid.replicated, acid.replicated_under(f"other_{acid.base.number}.*")
    first = replicated.open(101)
    assert replicated.open(101) == first
    assert first in acid.reader.open_transactions().open
    assert len({first, replicated.open(102), other.open(101)}) == 3
    replicated.commit(101)
    assert acid.reader.open_transactions().is_committed(first)
    again = replicated.open(101)
    assert again > first
    replicated.roll_back(101)
    assert again in acid.reader.open_transactions().aborted
    replicated.roll_back(102)
    other.roll_back(101)


def test_all_tables_of_a_transaction_are_shown_by_its_commit(acid: TransactionWorld) -> None:
    names = acid.created("orders", "items")
    acid.replicated.open(1)
    for name in names:
        acid.replicated.allocate(1, name, 1)
        acid.replicated.allocate(1, name, 1)
    assert acid.reader.valid_write_ids(names) == dict.fromkeys(names, ValidWriteIds(1, frozenset({1})))
    acid.replicated.commit(1)
    assert acid.reader.valid_write_ids(names) == dict.fromkeys(names, ValidWriteIds(1))


def test_no_write_id_is_given_without_an_open_transaction(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    expected = Conflict if acid.base.habits.any_write_id else Refused
    with pytest.raises(expected):
        acid.replicated.allocate(1, name, 1)
    acid.replicated.open(1)
    acid.replicated.commit(1)
    with pytest.raises(expected):
        acid.replicated.allocate(1, name, 1)
    assert acid.valid(name) == NONE


def test_a_second_write_id_of_a_table_is_a_conflict(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.replicated.open(1)
    acid.replicated.allocate(1, name, 1)
    with pytest.raises(Conflict):
        acid.replicated.allocate(1, name, 2)
    acid.replicated.commit(1)
    assert acid.valid(name) == ValidWriteIds(1)


def test_any_write_id_is_given_or_the_next_one_alone(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.replicated.open(1)
    if not acid.base.habits.any_write_id:
        with pytest.raises(Refused, match="next"):
            acid.replicated.allocate(1, name, 5)
        assert acid.valid(name) == NONE
        acid.replicated.allocate(1, name, 1)
        acid.replicated.commit(1)
        assert acid.valid(name) == ValidWriteIds(1)
        return
    acid.replicated.allocate(1, name, 5)
    assert acid.valid(name) == ValidWriteIds(5, frozenset({5}))
    acid.replicated.commit(1)
    assert acid.valid(name) == ValidWriteIds(5)
    assert acid.written(name) == {name: 6}


def test_a_lower_write_id_takes_readers_back_at_once(acid: TransactionWorld) -> None:
    if not acid.base.habits.any_write_id:
        pytest.skip("the server gives the next write id alone")
    [name] = acid.created("orders")
    for _ in range(9):
        acid.written(name)
    acid.replicated.open(1)
    acid.replicated.allocate(1, name, 7)
    assert acid.valid(name) == ValidWriteIds(7, frozenset({7}))
    acid.replicated.commit(1)
    assert acid.valid(name) == ValidWriteIds(7)


def test_aborted_write_ids_below_a_jump_are_forgotten(acid: TransactionWorld) -> None:
    """Their directories count as committed from then on."""
    if not acid.base.habits.any_write_id:
        pytest.skip("the server gives the next write id alone")
    [name] = acid.created("orders")
    [aborted] = acid.plain.open()
    acid.plain.allocate(name, [aborted])
    acid.plain.abort(aborted)
    acid.replicated.open(1)
    acid.replicated.allocate(1, name, 3)
    acid.replicated.commit(1)
    assert acid.valid(name) == ValidWriteIds(3)


def test_an_end_of_a_transaction_that_is_not_open_is_no_error(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.replicated.commit(1)
    acid.replicated.roll_back(1)
    for number, end in ((2, acid.replicated.commit), (3, acid.replicated.roll_back)):
        acid.replicated.open(number)
        acid.replicated.allocate(number, name, number - 1)
        end(number)
        acid.replicated.commit(number)
        acid.replicated.roll_back(number)
    assert acid.valid(name) == ValidWriteIds(2, aborted=frozenset({2}))


def test_an_aborted_transactions_write_id_can_be_given_again(acid: TransactionWorld) -> None:
    if not acid.base.habits.any_write_id:
        pytest.skip("the server gives the next write id alone")
    [name] = acid.created("orders")
    for end, found in (
        (acid.replicated.roll_back, ValidWriteIds(4, aborted=frozenset({4}))),
        (acid.replicated.commit, ValidWriteIds(4)),
    ):
        acid.replicated.open(1)
        acid.replicated.allocate(1, name, 4)
        end(1)
        assert acid.valid(name) == found


def test_a_commit_sets_a_mark_in_the_same_step(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.set_parameters(name, {MARK: "0"})
    table_id = acid.the_table(name).id or 0
    acid.replicated.open(1)
    acid.replicated.allocate(1, name, 1)
    acid.replicated.commit(1, CommitMark(table_id, MARK, "77"))
    assert acid.valid(name) == ValidWriteIds(1)
    has_marks = acid.base.habits.any_write_id
    assert (acid.the_table(name).parameters or {})[MARK] == ("77" if has_marks else "0")
    acid.replicated.commit(1, CommitMark(table_id, MARK, "78"))
    assert (acid.the_table(name).parameters or {})[MARK] == ("77" if has_marks else "0")


@pytest.mark.parametrize("key", [MARK, "calque.event"])
def test_a_mark_that_can_not_be_set_leaves_the_transaction_open(acid: TransactionWorld, key: str) -> None:
    """The table has no such parameter, or it is not one of those that a commit may set."""
    if not acid.base.habits.any_write_id:
        pytest.skip("the server knows no marks")
    [name] = acid.created("orders")
    acid.set_parameters(name, {"calque.event": "0"})
    transaction = acid.replicated.open(1)
    with pytest.raises(Unavailable):
        acid.replicated.commit(1, CommitMark(acid.the_table(name).id or 0, key, "77"))
    assert transaction in acid.reader.open_transactions().open
    assert acid.replicated.open(1) == transaction
    acid.replicated.commit(1)
    assert (acid.the_table(name).parameters or {})["calque.event"] == "0"


# What becomes of tables


@pytest.mark.parametrize("database", ["sales", "archive"])
def test_write_ids_follow_a_rename(acid: TransactionWorld, database: str) -> None:
    [name] = acid.created("orders")
    if database != "sales":
        acid.base.catalog.create_database(Database(acid.base.database(database)))
    acid.written(name)
    [transaction] = acid.plain.open()
    acid.plain.allocate(name, [transaction])
    renamed = acid.rename(name, TableName(acid.base.database(database), "renamed"))
    assert (acid.valid(name), acid.valid(renamed)) == (NONE, ValidWriteIds(2, frozenset({2})))
    acid.plain.commit(transaction)
    assert acid.valid(renamed) == ValidWriteIds(2)
    acid.created("orders")
    assert acid.written(name, renamed) == {name: 1, renamed: 3}


def test_write_ids_end_with_a_table_and_its_data(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.written(name)
    acid.drop(name, delete_data=True)
    acid.created("orders")
    assert acid.valid(name) == NONE
    assert acid.written(name) == {name: 1}


def test_write_ids_may_stay_where_a_table_is_dropped_without_its_data(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.written(name)
    [transaction] = acid.plain.open()
    acid.plain.allocate(name, [transaction])
    acid.plain.abort(transaction)
    acid.drop(name, delete_data=False)
    acid.created("orders")
    stay = acid.base.habits.kept_write_ids
    assert acid.valid(name) == (ValidWriteIds(2, aborted=frozenset({2})) if stay else NONE)
    assert acid.written(name) == {name: 3 if stay else 1}


def test_a_table_with_write_ids_is_not_renamed_to_a_name_that_has_kept_some(acid: TransactionWorld) -> None:
    name, other, empty = acid.created("orders", "items", "empty")
    acid.written(name)
    acid.written(other)
    acid.drop(name, delete_data=False)
    if acid.base.habits.kept_write_ids:
        with pytest.raises(Conflict):
            acid.rename(other, name)
        assert acid.valid(other) == ValidWriteIds(1)
        assert acid.rename(empty, name) == name
    else:
        acid.rename(other, name)
    assert acid.valid(name) == ValidWriteIds(1)


def test_write_ids_of_a_whole_database_end_with_it(acid: TransactionWorld) -> None:
    [name] = acid.created("orders")
    acid.written(name)
    acid.drop(name, delete_data=False)
    acid.base.catalog.drop_database(name.database)
    acid.created("orders")
    assert acid.written(name) == {name: 1}


@pytest.mark.parametrize(("parameters", "high"), [(FULL_ACID, CONVERTED), (INSERT_ONLY, 0)], ids=["full", "insert"])
def test_a_table_that_becomes_full_acid_begins_above_what_it_had(
    acid: TransactionWorld, parameters: Mapping[str, str], high: int
) -> None:
    if parameters is FULL_ACID and not acid.takes_full_acid:
        pytest.skip("the server takes no full ACID tables")
    [name] = acid.created("orders", parameters={})
    before = acid.base.log.current()
    acid.set_parameters(name, parameters)
    assert [event.event_type for event in acid.base.logged(before)] == ["ALTER_TABLE"]
    assert acid.valid(name) == ValidWriteIds(high)
    assert acid.written(name) == {name: high + 1}
    assert acid.valid(name) == ValidWriteIds(high + 1)


# The log


def rows_of(events: Sequence[Event]) -> list[tuple[str, str, str, str, dict[str, Any]]]:
    common = {"server", "servicePrincipal", "timestamp"}
    found = []
    for event in events:
        message = json.loads(event.message)
        assert common <= message.keys()
        body = {key: value for key, value in message.items() if key not in common}
        found.append((event.event_type, event.catalog, event.database, event.table, body))
    return found


def expected_rows(
    acid: TransactionWorld, event_type: str, body: Mapping[str, Any], table: TableName | None, **details: Any
) -> tuple[str, str, str, str, dict[str, Any]]:
    """What is measured of 3.1.3 and of 4.2.0 (facts of ACID tables, §1.2)."""
    if acid.base.habits.transaction_details:
        names = ("hive", *table) if table is not None else ("", "", "")
        return event_type, *names, {**body, **details}
    return event_type, "", table.database if table is not None else "null", " ", dict(body)


def ended(acid: TransactionWorld, transaction: int, written: Sequence[tuple[str, int]], *, aborted: bool) -> Any:
    databases, write_ids = [database for database, _ in written], [write_id for _, write_id in written]
    if aborted:
        details: dict[str, Any] = {"dbsUpdated": databases, "writeIds": write_ids}
        return expected_rows(acid, "ABORT_TXN", {"txnid": transaction}, None, **details)
    none = dict.fromkeys(("tables", "partitions", "tableObjs", "partitionObjs", "files"))
    details = {"writeIds": write_ids, "databases": databases, **none}
    return expected_rows(acid, "COMMIT_TXN", {"txnid": transaction}, None, **details)


def opened(acid: TransactionWorld, first: int, last: int) -> Any:
    return expected_rows(acid, "OPEN_TXN", {"txnIds": None, "fromTxnId": first, "toTxnId": last}, None)


def allocated(acid: TransactionWorld, name: TableName, *given: tuple[int, int]) -> Any:
    lists = {"txnIdList": [one for one, _ in given], "writeIdList": [write_id for _, write_id in given]}
    body = {"dbName": name.database, "tableName": name.table, **lists}
    return expected_rows(acid, "ALLOC_WRITE_ID_EVENT", body, name)


def test_transactions_are_logged_as_each_version_logs_them(acid: TransactionWorld) -> None:
    first, second = acid.created("orders", "items")
    acid.written(second)
    before = acid.base.log.current()
    one, two = acid.plain.open(2)
    acid.plain.allocate(first, [one, two])
    acid.plain.allocate(second, [one])
    acid.plain.allocate(second, [one])
    acid.plain.commit(one)
    acid.plain.abort(two)
    database = first.database
    assert rows_of(acid.base.logged(before)) == [
        opened(acid, one, two),
        allocated(acid, first, (one, 1), (two, 2)),
        allocated(acid, second, (one, 2)),
        ended(acid, one, [(database, 1), (database, 2)], aborted=False),
        ended(acid, two, [(database, 2)], aborted=True),
    ]


def test_replicated_transactions_are_logged_as_each_version_logs_them(acid: TransactionWorld) -> None:
    """4.2.0 tells what another transaction wrote, whose id is the number. It aborts under the number, too."""
    [name] = acid.created("orders")
    [foreign] = acid.plain.open()
    acid.plain.allocate(name, [foreign])
    before = acid.base.log.current()
    committed = acid.replicated.open(foreign)
    acid.replicated.open(foreign)
    acid.replicated.allocate(foreign, name, 2)
    acid.replicated.allocate(foreign, name, 2)
    acid.replicated.commit(foreign)
    acid.replicated.commit(foreign)
    aborted = acid.replicated.open(foreign)
    acid.replicated.roll_back(foreign)
    told = foreign if acid.base.habits.transaction_details else aborted
    assert rows_of(acid.base.logged(before)) == [
        opened(acid, committed, committed),
        allocated(acid, name, (committed, 2)),
        ended(acid, committed, [(name.database, 1)], aborted=False),
        opened(acid, aborted, aborted),
        ended(acid, told, [(name.database, 1)], aborted=True),
    ]
    acid.plain.abort(foreign)


def test_a_fold_of_the_log_has_the_metastores_valid_write_ids_after_each_step(acid: TransactionWorld) -> None:
    for database in ("sales", "archive"):
        acid.base.catalog.create_database(Database(acid.base.database(database)))
    story = Story(acid, random.Random(f"{acid.base.name} {seed()}"), acid.base.log.current())
    for _ in range(STEPS):
        story.step()
        story.compare()
    assert min(story.done.values()) > 0, story.done


def readable(valid: ValidWriteIds, above: int = 0) -> ValidWriteIds:
    """The same without what changes nothing for readers: invalid write ids that have no valid ones above them, and all
    write ids up to `above`."""
    high = valid.high
    while high > above and high in valid.invalid:
        high -= 1
    if high <= above:
        return NONE
    among = range(above + 1, high)
    return ValidWriteIds(high, valid.open.intersection(among), valid.aborted.intersection(among))


NAMES = ("a", "b", "c")
ACTS = (
    "create",
    "drop",
    "drop_table_alone",
    "rename",
    "open",
    "open_numbered",
    "allocate",
    "allocate_numbered",
    "commit",
    "abort",
    "commit_numbered",
)


@dataclass
class Story:
    """A random history of a metastore, and the fold of its log. `kept` has, by name, up to which write id a table was
    dropped that left its write ids there: the log does not tell of these."""

    acid: TransactionWorld
    rng: random.Random
    position: int
    fold: WriteIdFold = field(default_factory=WriteIdFold)
    tables: list[TableName] = field(default_factory=list)
    kept: dict[TableName, int] = field(default_factory=dict)
    plain: list[int] = field(default_factory=list)
    numbered: list[int] = field(default_factory=list)
    given: set[tuple[int, TableName]] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ACTS, 0))
    numbers: int = 1_000_000

    def step(self) -> None:
        """Do one of the acts for which there is something to do."""
        while True:
            act = self.rng.choice(ACTS)
            if getattr(self, act)():
                self.done[act] += 1
                return

    def compare(self) -> None:
        for event in self.acid.base.logged(self.position):
            self.fold.take_event(event)
            self.position = event.event_id
        found = self.acid.reader.valid_write_ids(self.tables)
        above = {name: self.kept.get(name, 0) for name in self.tables}
        told = {name: readable(found[name], above[name]) for name in self.tables}
        assert {name: readable(self.fold.valid(name), above[name]) for name in self.tables} == told

    def free_name(self) -> TableName:
        database = self.acid.base.database(self.rng.choice(["sales", "archive"]))
        return TableName(database, self.rng.choice([*NAMES, f"t{self.position}"]))

    def create(self) -> bool:
        name = self.free_name()
        if name in self.tables or len(self.tables) > 4:
            return False
        self.acid.base.created(self.acid.table(name.table, name.database.partition("_")[0]))
        self.tables.append(name)
        return True

    def drop(self, *, delete_data: bool = True) -> bool:
        if len(self.tables) < 2:
            return False
        name = self.rng.choice(self.tables)
        self.acid.drop(name, delete_data=delete_data)
        self.tables.remove(name)
        if delete_data or not self.acid.base.habits.kept_write_ids:
            self.kept.pop(name, None)
            self.given = {one for one in self.given if one[1] != name}
        elif self.fold.valid(name) != NONE:
            self.kept[name] = self.fold.valid(name).high
        return True

    def drop_table_alone(self) -> bool:
        return self.drop(delete_data=False)

    def rename(self) -> bool:
        after = self.free_name()
        if not self.tables or after in self.tables:
            return False
        before = self.rng.choice(self.tables)
        has_some = before in self.kept or self.fold.valid(before) != NONE
        try:
            self.acid.rename(before, after)
        except Conflict:
            return False
        self.tables[self.tables.index(before)] = after
        if has_some:
            self.kept.pop(after, None)
            if before in self.kept:
                self.kept[after] = self.kept.pop(before)
        self.given = {(one, after if name == before else name) for one, name in self.given}
        return True

    def open(self) -> bool:
        if len(self.plain) > 4:
            return False
        self.plain += self.acid.plain.open(self.rng.randint(1, 2))
        return True

    def open_numbered(self) -> bool:
        if len(self.numbered) > 2:
            return False
        self.numbers += 1
        self.acid.replicated.open(self.numbers)
        self.numbered.append(self.numbers)
        return True

    def allocate(self) -> bool:
        name = self.choice(self.tables)
        transactions = [one for one in self.plain if (one, name) not in self.given]
        if name is None or not transactions:
            return False
        chosen = self.rng.sample(transactions, self.rng.randint(1, len(transactions)))
        self.acid.plain.allocate(name, chosen)
        self.given |= {(one, name) for one in chosen}
        return True

    def allocate_numbered(self) -> bool:
        name, number = self.choice(self.tables), self.choice(self.numbered)
        if name is None or number is None or (-number, name) in self.given:
            return False
        high = max(self.fold.valid(name).high, self.kept.get(name, 0))
        self.acid.replicated.allocate(number, name, high + 1)
        self.given.add((-number, name))
        return True

    def commit(self) -> bool:
        transaction = self.choice(self.plain)
        if transaction is None:
            return False
        self.acid.plain.commit(transaction)
        self.plain.remove(transaction)
        return True

    def abort(self) -> bool:
        transaction = self.choice(self.plain)
        if transaction is None:
            return False
        self.acid.plain.abort(transaction)
        self.plain.remove(transaction)
        return True

    def commit_numbered(self) -> bool:
        number = self.choice(self.numbered)
        if number is None:
            return False
        self.acid.replicated.commit(number)
        self.numbered.remove(number)
        return True

    def choice(self, things: Sequence[Any]) -> Any:
        return self.rng.choice(things) if things else None


def test_a_target_tells_whether_it_can_have_native_replicas(acid: TransactionWorld) -> None:
    catalog, transactions = acid.base.catalog, TargetTransactions(acid.reader, acid.replicated)
    before = acid.reader.open_transactions().open
    why = why_not_native(catalog, any_storage(), transactions, f"file://{acid.base.root}/dr")
    assert why == (
        "" if acid.base.habits.any_write_id else "It gives tables no ids, so commits can't mark what they show"
    )
    assert [name for name in catalog.tables(OURS) if "trial" in name] == []
    assert acid.reader.open_transactions().open <= before
