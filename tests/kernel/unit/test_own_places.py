"""Which places are opened, read and written at all, whatever a source names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.core.formats.layout import natural_location, place, versioned_location
from calque.errors import Refused
from calque.model.secrets import FileSecret
from calque.ports import CopyTask


@pytest.mark.parametrize(
    "location",
    ["http://h/x", "jar:///a.jar", "zip://a/x", "github://o/r", "local:/etc", "reference://x/y", "x:/y"],
)
def test_a_scheme_that_is_no_file_system_s_is_not_opened(location: str) -> None:
    with pytest.raises(Refused, match=r"Locations of the scheme \w+ are not opened"):
        FileSystemSet().at(location)
    with pytest.raises(Refused, match=r"Locations of the scheme \w+ are not opened"):
        FileSystemSet().fsspec(location)


def test_a_target_s_own_scheme_is_opened_though_no_source_could_name_it() -> None:
    systems = FileSystemSet(own=OwnLocations(("local:///warehouse",)))
    _, path = systems.at("local:///warehouse/t")
    assert path == "/warehouse/t"
    with pytest.raises(Refused):
        systems.at("local:///etc")


@pytest.mark.parametrize("path", ["/a/../b", "/..", "/a/..", "file:/a/../../b", "s3a://b/../c", "/a\0b"])
def test_a_location_that_steps_upwards_is_none(path: str) -> None:
    with pytest.raises(Refused, match="is no path"):
        place(path)


def test_what_only_looks_like_a_step_upwards_is_a_name() -> None:
    assert [place(path).path for path in ("/a/..b", "/a../b", "/%2e%2e/b", "/...")] == [
        "/a/..b",
        "/a../b",
        "/%2e%2e/b",
        "/...",
    ]


@pytest.mark.parametrize("name", ["a/b", "../b", "..", ".", "a\0"])
def test_a_name_that_is_no_directory_s_has_no_place(name: str) -> None:
    for attempt in (
        lambda: natural_location("file:/w", name, "t"),
        lambda: natural_location("file:/w", "d", name),
        lambda: versioned_location("file:/w", "d", name, "c1", 5),
    ):
        with pytest.raises(Refused, match="can't be the name of a directory"):
            attempt()


EFFECTS: dict[str, Callable[[FileStorage, str], object]] = {
    "write": lambda storage, below: storage.write(f"{below}/f", b"x"),
    "remove": lambda storage, below: storage.remove([f"{below}/f"]),
    "make": lambda storage, below: storage.make_directories([f"{below}/d"]),
    "publish": lambda storage, below: storage.publish([(f"{below}/g", f"{below}/f")]),
    "copy": lambda storage, below: storage.copy([CopyTask(f"{below}/g", f"{below}/h", 1, 1)]),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_nothing_is_done_behind_a_link_that_leads_out_of_the_warehouse(effect: str, tmp_path: Path) -> None:
    warehouse, outside = tmp_path / "warehouse", tmp_path / "outside"
    outside.mkdir()
    for name in ("f", "g"):
        (outside / name).write_bytes(b"1")
    (warehouse / "d.db").mkdir(parents=True)
    (warehouse / "d.db" / "t").symlink_to(outside)
    storage = FileStorage(FileSystemSet(own=OwnLocations((f"file:{warehouse}",))))
    with pytest.raises(Refused, match="A link leads from there to"):
        EFFECTS[effect](storage, f"file:{warehouse}/d.db/t")
    assert sorted(path.name for path in outside.iterdir()) == ["f", "g"]
    storage.remove([f"file:{warehouse}/d.db/t"])
    assert not (warehouse / "d.db" / "t").is_symlink()
    assert sorted(path.name for path in outside.iterdir()) == ["f", "g"]


def test_a_warehouse_that_is_a_link_itself_and_links_inside_it_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "disk" / "a.db").mkdir(parents=True)
    (tmp_path / "warehouse").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "b.db").symlink_to(tmp_path / "disk" / "a.db")
    storage = FileStorage(FileSystemSet(own=OwnLocations((f"file:{tmp_path}/warehouse",))))
    storage.write(f"file:{tmp_path}/warehouse/b.db/f", b"x")
    assert (tmp_path / "disk" / "a.db" / "f").read_bytes() == b"x"


def test_a_system_is_opened_anew_only_when_a_file_of_its_own_secrets_changed(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("one")
    systems = FileSystemSet({"secret": FileSecret(str(file)), "key": "k", "endpoint_url": "http://127.0.0.1:9"})
    local, remote = systems.at("/a")[0], systems.at("s3://b/a")[0]
    assert (systems.at("/b")[0], systems.at("s3://b/c")[0]) == (local, remote)
    file.write_text("")
    assert systems.at("s3://b/c")[0] is remote
    file.write_text("three")
    assert systems.at("/b")[0] is local
    assert systems.at("s3://b/c")[0] is not remote
