"""Whether what answers is what a ledger remembers: ids, marks in directories, the hidden database, the lease."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from calque.app import APP
from calque.control.identity import ledgers_of_deployment
from calque.core.records.identity import KEPT_LEDGERS, aliases, with_ledgers
from calque.engine.identity.identity import (
    SourceAnswer,
    ask,
    mark_directories,
    remembered,
    require,
    require_removal,
    settle,
    spellings_of,
)
from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused
from calque.model.identity import HiddenIdentity, LedgerPosition
from calque.model.ledger import Epoch
from calque.model.policy import Policy
from calque.model.records import LedgerIdentity
from calque.ports import Storage
from calque.ports.forwarding import ForwardingStorage
from support.faults.leases import writer
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_3, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.worlds.worlds import Backup

HQ = SourceAnswer("id of hq", 10)
POLICY = Policy("dr", "hq", include=("*.*",), warehouse="file:/target")


def metastore(name: str = "id of dr") -> MemoryMetastore:
    return MemoryMetastore(HIVE_3, "file:/managed", identity=name)


@dataclass
class Deployment:
    """A target with a ledger, whose process runs, ends, and runs again. What it is over may be exchanged."""

    storage: Storage = field(default_factory=MemoryStorage)
    store: MemoryMetastore = field(default_factory=metastore)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    policy: Policy = POLICY
    runs: int = 0

    @property
    def side(self) -> TargetSide:
        return TargetSide.of(self.policy, MemoryCatalog(self.store), self.ledger, self.storage)

    def leases(self) -> CatalogLeases:
        def first_place(location: str) -> str:
            content = self.storage.read(f"{location}/_calque_warehouse/warehouse.json")
            return location if content is None else json.loads(content)["place"]

        return CatalogLeases(MemoryCatalog(self.store), "hq", "dr", self.policy.warehouse, first_place)

    def check(self, source: SourceAnswer = HQ) -> None:
        require(self.side, ask(self.side, self.leases(), source))

    def run(self, source: SourceAnswer = HQ, epochs: int = 1, state: str = "one") -> str:
        """Take the lease, settle, publish so many epochs, give it back; the ledger's id."""
        self.check(source)
        mark_directories(self.side)
        self.runs += 1
        lease = Lease(self.leases(), "dr", 30.0)
        assert lease.attempt(writer(f"{state}-{time.monotonic_ns()}", state=state)) is None
        assert lease.mine is not None
        identity = settle(self.side, ask(self.side, self.leases(), source), lease.mine, lease.previous)
        for _ in range(epochs):
            self.publish()
        last = self.ledger.last_epoch()
        lease.shown = identity.ledger, last.epoch if last is not None else 0
        lease.release()
        return identity.ledger

    def publish(self) -> None:
        last = self.ledger.last_epoch()
        number = last.epoch + 1 if last is not None else 1
        self.ledger.publish(Epoch(number, 10 * number, 10 * number - 10, "2026-01-01T00:00:00+00:00", "window"), [], [])

    def refused(self, source: SourceAnswer = HQ) -> str:
        with pytest.raises(Refused) as refused:
            self.check(source)
        return str(refused.value)

    def may_not_remove(self) -> str:
        with pytest.raises(Refused) as refused:
            require_removal(self.side, ask(self.side, self.leases(), HQ))
        return str(refused.value)

    def identity(self) -> LedgerIdentity:
        identity = remembered(self.side)
        assert identity is not None
        return identity


def test_a_deployment_knows_itself_again() -> None:
    one = Deployment()
    first = one.run()
    assert [one.run() for _ in range(3)] == [first] * 3
    one.check()
    identity = require_removal(one.side, ask(one.side, one.leases(), HQ))
    assert (identity.source_id, identity.target_id, identity.generation) == ("id of hq", "id of dr", 4)


def test_another_source_is_refused_and_one_that_does_not_answer_or_has_no_id_is_not() -> None:
    one = Deployment()
    one.run()
    said = one.refused(SourceAnswer("id of another", 10))
    assert "id of hq" in said
    assert "id of another" in said
    one.check(SourceAnswer())
    one.check(SourceAnswer(""))
    one.run(SourceAnswer())
    assert one.identity().source_id == "id of hq"


def test_a_new_ledger_is_refused_by_what_the_directory_and_the_hidden_database_remember_of_the_source() -> None:
    one = Deployment()
    one.run()
    two = replace(one, ledger=MemoryLedger())
    assert "id of another" in two.refused(SourceAnswer("id of another", 10))


def test_another_target_metastore_is_refused_however_the_warehouse_is_spelled() -> None:
    one = Deployment()
    one.run()
    assert "id of another" in replace(one, store=metastore("id of another")).refused()
    linked = Linked(one.storage)
    two = Deployment(linked, metastore("id of another"), policy=replace(one.policy, warehouse="file:/link"))
    assert "Another metastore has its replicas in file:/link" in two.refused()


def test_two_deployments_of_before_that_share_a_warehouse_run_and_remove_nothing() -> None:
    one = Deployment()
    two = replace(one, store=metastore("id of another"), ledger=MemoryLedger())
    for each in (one, two):
        each.publish()
        assert "It is not written down yet" in each.may_not_remove()
    for each in (one, two, one, two):
        each.run()
    for each in (one, two):
        assert "Another metastore has its replicas in" in each.may_not_remove()


def test_a_restored_target_is_refused_and_so_is_an_empty_one_with_the_same_id() -> None:
    one = Deployment()
    one.run()
    backup, restored = Backup(one.store), metastore()
    one.run()
    backup.restore(restored)
    assert "is at generation 1, and its ledger remembers 2" in replace(one, store=restored).refused()
    assert "does not know this deployment" in replace(one, store=metastore()).refused()


def test_a_directory_that_is_not_there_or_is_another_one_is_refused() -> None:
    one = Deployment()
    one.run()
    empty = replace(one, storage=MemoryStorage())
    assert "nothing of the kind lies there" in empty.refused()
    mark_directories(empty.side)
    assert "is another directory than before" in empty.refused()
    one.check()


@pytest.mark.parametrize("lost", ["a reign", "epochs of a reign"])
@pytest.mark.parametrize("standby", [False, True])
def test_a_ledger_that_was_restored_is_another_one_and_remains_so(lost: str, standby: bool) -> None:
    one = Deployment()
    first = one.run()
    backup = one.ledger.copy()
    if lost == "a reign":
        one.run(epochs=0)
    else:
        # The writer went on after the copy was made.
        backup = MemoryLedger()
        backup.put_records([one.identity()])
        one.publish()
    if standby:
        replace(one, ledger=MemoryLedger()).run(state="two")
    restored = replace(one, ledger=backup)
    second = restored.run()
    assert second != first
    assert restored.run() == second


def test_a_standby_and_its_original_stay_who_they_are() -> None:
    one = Deployment()
    two = replace(one, ledger=MemoryLedger())
    ids = [(one.run(), two.run(state="two")) for _ in range(3)]
    assert len(set(ids)) == 1
    assert ids[0][0] != ids[0][1]


def test_a_writer_that_took_its_own_lease_again_has_lost_nothing() -> None:
    one = Deployment()
    first = one.run()
    lease = Lease(one.leases(), "dr", 30.0)
    me = writer("me")
    for _ in range(3):
        assert lease.attempt(me) is None
        if one.identity().writer != me.id:
            assert lease.mine is not None
            settle(one.side, ask(one.side, one.leases(), HQ), lease.mine, lease.previous)
    lease.shown = one.identity().ledger, 1
    lease.release()
    assert one.run() == first


def test_every_spelling_under_which_a_directory_was_found_is_known() -> None:
    one = Deployment()
    one.run()
    linked = replace(one, storage=Linked(one.storage), policy=replace(one.policy, warehouse="file:///link/"))
    linked.run()
    identity = linked.identity()
    assert spellings_of(identity, "/target/a.db/t") == ("file:/target/a.db/t", "file:/link/a.db/t")
    assert spellings_of(identity, "file:/link") == ("file:/link", "file:/target")
    assert spellings_of(identity, "file:/linked") == ("file:/linked",)
    assert aliases(None, "file:///a//b") == ("file:/a/b",)


def test_the_spelling_of_a_version_before_is_found_by_the_hidden_database() -> None:
    one = Deployment()
    one.run()
    one.ledger = MemoryLedger()
    one.publish()
    linked = replace(one, storage=Linked(one.storage), policy=replace(one.policy, warehouse="file:/link"))
    linked.run()
    assert set(spellings_of(linked.identity(), "file:/link/x")) == {"file:/link/x", "file:/target/x"}


def test_another_warehouse_is_another_directory_of_the_same_deployment() -> None:
    one = Deployment()
    first = one.run()
    moved = replace(one, policy=replace(one.policy, warehouse="file:/moved"))
    assert [moved.run(), moved.run()] == [first, first]
    assert {names for spellings in moved.identity().directories.values() for names in spellings} == {
        "file:/target",
        "file:/moved",
    }
    assert "does not know this deployment" in replace(moved, store=metastore()).refused()
    back = replace(moved, policy=one.policy)
    assert back.run() == first


def test_the_hidden_database_remembers_the_newest_ledgers() -> None:
    hidden = HiddenIdentity("name")
    for number in range(100):
        hidden = with_ledgers(hidden, None, f"ledger {number}", LedgerPosition(number, 1, "me"))
    assert sorted(hidden.ledgers) == sorted(f"ledger {number}" for number in range(100 - KEPT_LEDGERS, 100))


def test_the_ledgers_of_targets_that_share_a_metastore_or_a_directory_are_of_one_deployment(tmp_path: Path) -> None:
    def target(name: str, port: int, warehouse: str) -> str:
        return (
            f'[targets.{name}]\nmetastore = "thrift://127.0.0.1:{port}"\nwarehouse = "{warehouse}"\n'
            f'include = ["{name}.*"]\n'
        )

    file = tmp_path / "calque.toml"
    file.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        + target("one", 2, "file:///a")
        + target("same_metastore", 2, "file:///b")
        + target("same_place", 3, "file:/a/below")
        + target("other", 4, "file:///c")
    )
    (tmp_path / "state" / "loads" / "same_place" / "sales").mkdir(parents=True)
    (tmp_path / "state" / "loads" / "other" / "hr").mkdir(parents=True)
    wiring = APP.wiring(APP.load(str(file)))

    def names(target: str) -> set[str]:
        return {one.name for one in ledgers_of_deployment(wiring, target)}

    assert names("one") == {"same_metastore", "same_place", "same_place/sales"}
    assert names("same_metastore") == {"one"}
    assert names("other") == {"other/hr"}
    wiring.ledger("one").put_records([LedgerIdentity("a", target_id="id", directories={"n": ("file:/a",)})])
    wiring.ledger("other").put_records([LedgerIdentity("b", target_id="other id", directories={"n": ("file:/c",)})])
    assert names("other") == {"other/hr", "one"}


class Linked(ForwardingStorage):
    """`file:/link` leads to `file:/target`."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage, Following())


class Following:
    def __call__(self, _method: str, call: Callable[..., object], /, *arguments: object, **named: object) -> object:
        return call(*map(followed, arguments), **named)


def followed(argument: object) -> object:
    if isinstance(argument, str):
        return argument.replace("file:///link", "file:/target").replace("file:/link", "file:/target")
    if isinstance(argument, list | tuple):
        return type(argument)(map(followed, argument))
    return argument
