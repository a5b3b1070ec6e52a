"""Which journal a state folder has, and when a configuration names another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.adapters.control import ControlStore
from calque.config import Config, load
from calque.errors import Refused
from calque.wiring.journal_location import Left, Place, agree, configured, left, moved, place, recorded

DELTA = Place("delta")
KAFKA = Place("kafka", "a:1,b:2", "hq.events")


@pytest.fixture
def control(tmp_path: Path) -> ControlStore:
    return ControlStore(tmp_path / "control")


def config(folder: Path, journal: str = "") -> Config:
    file = folder / "calque.toml"
    file.write_text(
        f'[source]\nname = "hq"\nmetastore = "thrift://hq:1"\n[journal]\n{journal}\n'
        '[targets.dr]\nmetastore = "thrift://dr:1"\nwarehouse = "dr"\n'
    )
    return load(file)


def kafka(folder: Path, brokers: str, topic: str = "hq.events") -> Config:
    return config(folder, f'format = "kafka"\nbrokers = "{brokers}"\ntopic = "{topic}"')


def begun(control: ControlStore, where: Place | None = None) -> None:
    control.put("journal", {"source": "hq", "after": 3, **(where.record() if where else {})})


def test_before_the_first_capture_any_journal_will_do(control: ControlStore, tmp_path: Path) -> None:
    for wanted in (config(tmp_path), kafka(tmp_path, "a:1")):
        agree(wanted, control)
        assert recorded(control) is None
        assert place(wanted, control) == configured(wanted)


def test_a_folder_of_a_version_that_knew_delta_only_has_a_delta_table(control: ControlStore, tmp_path: Path) -> None:
    begun(control)
    assert recorded(control) == DELTA
    agree(config(tmp_path), control)
    with pytest.raises(Refused, match=r"names topic hq.events on a:1, and what was captured is in the Delta table"):
        agree(kafka(tmp_path, "a:1"), control)


def test_the_journal_that_there_is_is_the_one_that_is_read(control: ControlStore, tmp_path: Path) -> None:
    begun(control, KAFKA)
    assert place(config(tmp_path), control) == KAFKA
    assert place(kafka(tmp_path, "z:1"), control) == KAFKA


@pytest.mark.parametrize("wanted", [("a:1,b:2", "other"), ("c:3", "hq.events")])
def test_another_topic_or_other_brokers_are_another_journal(
    control: ControlStore, tmp_path: Path, wanted: tuple[str, str]
) -> None:
    begun(control, KAFKA)
    with pytest.raises(Refused, match=r"calque journal move"):
        agree(kafka(tmp_path, *wanted), control)


def test_brokers_may_change_one_by_one(control: ControlStore, tmp_path: Path) -> None:
    begun(control, KAFKA)
    agree(kafka(tmp_path, "b:2,c:3"), control)
    agree(kafka(tmp_path, "c:3"), control)
    assert recorded(control) == Place("kafka", "c:3", "hq.events")


def test_a_move_is_recorded_beside_what_else_is_known(control: ControlStore) -> None:
    begun(control, KAFKA)
    assert left(control) is None
    moved(control, DELTA, 812)
    assert (recorded(control), left(control)) == (DELTA, Left(KAFKA, 812))
    assert (control.read("journal") or {})["after"] == 3
