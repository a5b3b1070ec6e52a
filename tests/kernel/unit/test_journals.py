"""Which journal a state folder has, and when a configuration names another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.adapters.control import ControlStore
from calque.app import APP
from calque.errors import Refused
from calque.wiring.journal_location import FormerJournal, JournalAddress, JournalLocation

DELTA = JournalAddress("delta")
KAFKA = JournalAddress("kafka", "a:1,b:2", "hq.events")


@pytest.fixture
def control(tmp_path: Path) -> ControlStore:
    return ControlStore(tmp_path / "control")


def location(control: ControlStore, folder: Path, journal: str = "") -> JournalLocation:
    file = folder / "calque.toml"
    file.write_text(
        f'[source]\nname = "hq"\nmetastore = "thrift://hq:1"\n[journal]\n{journal}\n'
        '[targets.dr]\nmetastore = "thrift://dr:1"\nwarehouse = "dr"\n'
    )
    return JournalLocation(APP.load(file).only_source(), control)


def kafka(control: ControlStore, folder: Path, brokers: str, topic: str = "hq.events") -> JournalLocation:
    return location(control, folder, f'format = "kafka"\nbrokers = "{brokers}"\ntopic = "{topic}"')


def begun(control: ControlStore, where: JournalAddress | None = None) -> None:
    control.put("journal", {"source": "hq", "after": 3, **(where.record() if where else {})})


def test_before_the_first_capture_any_journal_will_do(control: ControlStore, tmp_path: Path) -> None:
    for wanted in (location(control, tmp_path), kafka(control, tmp_path, "a:1")):
        wanted.agree()
        assert wanted.recorded() is None
        assert wanted.place() == wanted.configured()


def test_a_folder_of_a_version_that_knew_delta_only_has_a_delta_table(control: ControlStore, tmp_path: Path) -> None:
    begun(control)
    assert location(control, tmp_path).recorded() == DELTA
    location(control, tmp_path).agree()
    with pytest.raises(Refused, match=r"names topic hq.events on a:1, and what was captured is in the Delta table"):
        kafka(control, tmp_path, "a:1").agree()


def test_the_journal_that_there_is_is_the_one_that_is_read(control: ControlStore, tmp_path: Path) -> None:
    begun(control, KAFKA)
    assert location(control, tmp_path).place() == KAFKA
    assert kafka(control, tmp_path, "z:1").place() == KAFKA


@pytest.mark.parametrize("wanted", [("a:1,b:2", "other"), ("c:3", "hq.events")])
def test_another_topic_or_other_brokers_are_another_journal(
    control: ControlStore, tmp_path: Path, wanted: tuple[str, str]
) -> None:
    begun(control, KAFKA)
    with pytest.raises(Refused, match=r"calque journal move"):
        kafka(control, tmp_path, *wanted).agree()


def test_brokers_may_change_one_by_one(control: ControlStore, tmp_path: Path) -> None:
    begun(control, KAFKA)
    kafka(control, tmp_path, "b:2,c:3").agree()
    kafka(control, tmp_path, "c:3").agree()
    assert location(control, tmp_path).recorded() == JournalAddress("kafka", "c:3", "hq.events")


def test_a_move_is_recorded_beside_what_else_is_known(control: ControlStore, tmp_path: Path) -> None:
    begun(control, KAFKA)
    journal = location(control, tmp_path)
    assert journal.former() is None
    journal.move(DELTA, 812)
    assert (journal.recorded(), journal.former()) == (DELTA, FormerJournal(KAFKA, 812))
    assert (control.read("journal") or {})["after"] == 3
