"""Pins behave like this, over files of this machine (linked or copied) and in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from calque.adapters.files.pins import StoredPins, why_not_linked
from calque.adapters.files.storage import FileStorage
from calque.engine.sweep.retention import Limits, release
from calque.model.files import Listing
from calque.model.ledger import Epoch
from calque.ports import Pins, Storage
from support.memory.ledger import MemoryLedger
from support.memory.storage import MemoryStorage


@dataclass
class Case:
    storage: Storage
    pins: Pins
    root: str
    write: Callable[[str, bytes], None]

    def listing(self, at: str = "t") -> Listing:
        location = f"{self.root}/{at}"
        return self.storage.list([location])[location]

    def content(self, event_id: int, at: str = "t") -> dict[str, bytes]:
        pin = self.pins.at(event_id, f"{self.root}/{at}")
        files = self.storage.list([pin])[pin].files if pin else ()
        return {file.path: self.storage.read(f"{pin}/{file.path}") or b"" for file in files}


@pytest.fixture(params=["auto", "hardlink", "copy", "memory"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    storage: Storage = MemoryStorage() if request.param == "memory" else FileStorage()
    links, copies = request.param in ("auto", "hardlink"), request.param != "auto"
    pins = StoredPins(storage, f"file:{tmp_path}/pins", links=links, copies=copies)
    found = Case(storage, pins, f"file:{tmp_path}/source", storage.write)
    found.write(f"{found.root}/t/f", b"1")
    found.write(f"{found.root}/t/sub/ü g", b"22")
    return found


def test_what_is_kept_stays_when_the_files_are_removed_and_others_come(case: Case) -> None:
    assert case.pins.keep(7, f"{case.root}/t", case.listing())
    case.storage.remove([f"{case.root}/t"])
    case.write(f"{case.root}/t/f", b"other")
    assert case.content(7) == {"f": b"1", "sub/ü g": b"22"}
    assert case.pins.keep(8, f"{case.root}/t", case.listing())
    assert (case.content(8), list(case.pins.events())) == ({"f": b"other"}, [7, 8])
    assert case.pins.usage(7)[0] == 3
    case.pins.release([7, 9])
    assert (case.pins.at(7, f"{case.root}/t"), list(case.pins.events())) == ("", [8])


def test_kept_files_are_the_listed_ones_in_size_and_time(case: Case) -> None:
    listing = case.listing()
    assert case.pins.keep(7, listing.location, listing)
    pin = case.pins.at(7, f"{case.root}/t")
    assert case.storage.list([pin])[pin].files == listing.files


def test_nothing_is_kept_where_a_file_is_not_the_listed_one_any_more(case: Case) -> None:
    listing = case.listing()
    case.write(f"{case.root}/t/f", b"longer")
    assert not case.pins.keep(7, listing.location, listing)
    assert case.content(7) == {}
    case.storage.remove([f"{case.root}/t/f"])
    assert not case.pins.keep(7, listing.location, listing)


def test_keeping_again_after_a_crash_keeps_what_is_listed_now(case: Case) -> None:
    assert case.pins.keep(7, f"{case.root}/t", case.listing())
    case.storage.remove([f"{case.root}/t"])
    case.write(f"{case.root}/t/g", b"2")
    assert case.pins.keep(7, f"{case.root}/t", case.listing())
    assert case.content(7) == {"g": b"2"}


def test_a_store_without_pins_has_none(case: Case) -> None:
    assert list(case.pins.events()) == []
    case.pins.release([1])
    assert case.pins.at(1, f"{case.root}/t") == ""


def ledger_at(event_id: int | None) -> MemoryLedger:
    ledger = MemoryLedger()
    if event_id is not None:
        ledger.publish(Epoch(1, event_id, 0, "2026-01-01T00:00:00.000+00:00", "bootstrap"), [], [])
    return ledger


def test_pins_go_when_every_target_shows_their_event_or_the_limits_are_reached(case: Case) -> None:
    for event_id in (5, 6, 7, 8):
        assert case.pins.keep(event_id, f"{case.root}/t", case.listing())
    wide = Limits(10**9, 10**9)
    assert release(case.pins, [ledger_at(9), ledger_at(None)], wide, 0) == []
    assert release(case.pins, [ledger_at(9), ledger_at(5)], wide, 0) == [5]
    assert release(case.pins, [ledger_at(5)], Limits(6, 10**9), 0) == [6]
    assert list(case.pins.events()) == [7, 8]
    since = max(case.pins.usage(event_id)[1] for event_id in (7, 8))
    assert release(case.pins, [ledger_at(5)], Limits(10**9, 10.0), since + 11 * 10**9) == [7, 8]


@pytest.mark.parametrize("links", [True, False])
def test_what_a_symbolic_link_leads_to_is_not_kept(tmp_path: Path, links: bool) -> None:
    """A copy of a kept file would have rights for others that the file at the link's end does not give."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "f").write_bytes(b"x")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "d").symlink_to(tmp_path / "far")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "f").symlink_to(tmp_path / "far" / "f")
    (tmp_path / "linked").symlink_to(tmp_path / "far")
    storage = FileStorage()
    pins = StoredPins(storage, f"file:{tmp_path}/pins", links=links)
    kept = {}
    for name in ("t", "u", "linked"):
        location = f"file:{tmp_path}/{name}"
        kept[name] = pins.keep(7, location, storage.list([location])[location])
    assert kept == {"t": False, "u": False, "linked": True}


def test_a_link_shares_what_is_written_in_place_and_size_and_time_tell(tmp_path: Path) -> None:
    storage = FileStorage()
    pins = StoredPins(storage, f"file:{tmp_path}/pins", links=True)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "f").write_bytes(b"1")
    location = f"file:{tmp_path}/t"
    listing = storage.list([location])[location]
    assert pins.keep(7, listing.location, listing)
    pin = pins.at(7, location)
    assert (tmp_path / "t" / "f").samefile(Path(pin.removeprefix("file:")) / "f")
    (tmp_path / "t" / "f").write_bytes(b"22")
    assert storage.list([pin])[pin].files != listing.files


SHARED_MEMORY = Path("/dev/shm")


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="there is no second file system")
def test_where_no_link_can_be_made_nothing_is_kept_unless_files_may_be_copied(tmp_path: Path) -> None:
    storage = FileStorage()
    with TemporaryDirectory(dir=SHARED_MEMORY) as other:
        location, root = f"file:{tmp_path}/t", f"file:{other}/pins"
        storage.write(f"{location}/f", b"1")
        listing = storage.list([location])[location]
        assert not StoredPins(storage, root, links=True, copies=False).keep(7, listing.location, listing)
        assert list(Path(other).rglob("f")) == []
        assert StoredPins(storage, root, links=True).keep(7, listing.location, listing)
        assert why_not_linked(location, root) == f"{location} is on another file system than {root}"
        assert list(Path(other).rglob("_calque_probe_*")) == []


def test_whether_links_can_be_made_is_tried_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    assert why_not_linked(f"file:{tmp_path}/t", f"{tmp_path}/state/pins") == ""
    assert why_not_linked("hdfs://nn/t", f"{tmp_path}/pins") == "hdfs://nn/t is on no file system of this machine"
    assert why_not_linked(f"{tmp_path}/t", "s3a://b/pins") == "s3a://b/pins is on no file system of this machine"
    assert why_not_linked(f"{tmp_path}/gone", f"{tmp_path}/pins") == f"No such file or directory: {tmp_path}/gone"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]
