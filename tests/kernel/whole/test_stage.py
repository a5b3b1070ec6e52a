"""`engine.files.stage`: a directory at the target belongs to one object, however paths come together."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.core.formats.layout import join
from calque.engine.failpoints import FailpointGuard
from calque.engine.files.claims import chain
from calque.engine.files.stage import StageRequest, choose, stage, stage_append
from calque.engine.sides.claim_book import identity_of
from calque.engine.sides.sides import TargetSide
from calque.errors import Unavailable
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.ports import Ledger
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.worlds.disks import Death, Disk
from support.worlds.worlds import Died

BASE = "file:/base"


def a_side(storage: MemoryStorage, ledger: Ledger | None = None) -> TargetSide:
    policy = Policy("dr", "hq", warehouse="file:/target", external_base=BASE)
    catalog = MemoryCatalog(MemoryMetastore(HIVE_4, "file:/m"))
    return TargetSide.of(policy, catalog, ledger or MemoryLedger(), storage)


def wanted(side: TargetSide, table: str, path: str, event_id: int) -> StageRequest:
    location = f"file:/source/{path}"
    side.storage.make_directories([location])  # type: ignore[attr-defined]
    listing = side.storage.list([location])[location]
    name = TableName("d", table)
    return StageRequest(listing, f"{BASE}/{path}", name, "", str(event_id), event_id, str(event_id))


def test_two_tables_on_one_directory_get_one_each() -> None:
    side = a_side(MemoryStorage())
    first, second = (stage(side, [wanted(side, table, "x", at)])[0].location for table, at in (("a", 1), ("b", 2)))
    assert (first, second) == (f"{BASE}/x", "file:/target/d.db/_calque/b.2/data/2")


@pytest.mark.parametrize(("early", "late"), [("x", "x/inner"), ("x/inner", "x")])
def test_a_table_inside_another_lies_outside_of_it_at_the_target(early: str, late: str) -> None:
    side = a_side(MemoryStorage())
    first, second = (
        choose(side, [wanted(side, path[-1], path, at)])[0].location for path, at in ((early, 1), (late, 2))
    )
    assert first == f"{BASE}/{early}"
    assert second.startswith("file:/target/d.db/_calque/")


@pytest.mark.parametrize(("one", "other"), [("x", "x"), ("x", "x/inner"), ("x/inner", "x")])
def test_of_two_that_claim_a_path_in_the_same_moment_one_gives_way(one: str, other: str) -> None:
    storage = MemoryStorage()
    side = a_side(storage)
    mine, theirs = wanted(side, "a", one, 1), wanted(side, "b", other, 2)
    found: list[str] = []

    def come_between(call: str, about: str) -> None:
        if call == "create" and about.endswith("_claim.1") and not found:
            found.append("")
            found[0] = choose(side, [theirs])[0].location

    storage.before = come_between
    here = choose(side, [mine])[0].location
    assert found == [f"{BASE}/{other}"]
    assert here.startswith("file:/target/d.db/_calque/")
    assert one == other or not storage.exists(f"{BASE}/{one}/_calque_claim.1")


def test_an_object_goes_on_where_it_began() -> None:
    side = a_side(MemoryStorage())
    item = wanted(side, "a", "x", 1)
    assert [choose(side, [item])[0].location for _ in range(2)] == [f"{BASE}/x"] * 2


@pytest.mark.parametrize(("failpoint", "error"), [("before", Died), ("lost", Unavailable)])
def test_claims_name_an_id_that_the_ledger_has_though_its_first_record_failed(
    failpoint: str, error: type[BaseException]
) -> None:
    ledger = MemoryLedger()
    storage = MemoryStorage()
    side = a_side(storage, FailpointGuard(Death(f"ledger.put_records.{failpoint}")).ledger(ledger))
    with pytest.raises(error):
        stage(side, [wanted(side, "a", "x", 1)])
    [staged] = stage(side, [wanted(side, "a", "x", 1)])
    [(_, claim)] = chain(storage, staged.location, storage.children(staged.location))
    identity = identity_of(ledger)
    assert claim is not None
    assert identity is not None
    assert claim.ledger == identity.ledger


def test_an_insert_into_a_large_directory_copies_its_new_files_and_reads_none_of_the_old(tmp_path: Path) -> None:
    disk = Disk()
    source, there = f"file:{tmp_path}/source", f"file:{tmp_path}/there"
    for number in range(50):
        disk.write(join(source, f"part-{number:03d}"), bytes(10_000))
    side = a_side(disk)  # type: ignore[arg-type]
    item = StageRequest(disk.list([source])[source], there, TableName("d", "t"), "p=1", "1", 1, "1")
    stage(side, [item])
    for file in item.listing.files:
        (tmp_path / "source" / file.path).unlink()
        (tmp_path / "source" / file.path).symlink_to("/nowhere")
    disk.write(join(source, "part-new"), bytes(7))
    new = disk.list([source])[source].files
    disk.moved.clear()
    listing = type(item.listing)(source, tuple(sorted((*item.listing.files, *new))))
    append = stage_append(side, disk.list([there])[there], listing, 2)
    disk.publish(append.renames)
    assert disk.moved == [(join(source, "part-new"), 7)]
    assert len(disk.list([there])[there].files) == 51
