"""A state folder whose disk is full, read-only, another user's or gone: one line with the cause, nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.control import ControlStore
from calque.app import APP
from calque.control.process_locks import Roles
from calque.errors import StateFolderGone, StateUnusable
from calque.wiring.wiring import Wiring
from support.services.mounts import can_mount, with_disk

ROLE, LEASE = "target dr", 0.6
KEEP = f"""
import json, os, sys, time
from contextlib import suppress
from pathlib import Path
from calque.control.process_locks import Roles
from calque.errors import CalqueError
state = Path(sys.argv[1])

def fill(name):
    with (state / name).open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))

def held(action):
    try:
        action()
    except CalqueError as error:
        return type(error).__name__, error.exit_code, str(error)
    return None

said = {{}}
if sys.argv[2] == "before":
    (state / "locks").mkdir(mode=0o700)
    fill("filler")
with Roles(state) as roles:
    said["taken"] = held(lambda: roles.take({{{ROLE!r}: {LEASE}}}))
    if sys.argv[2] == "while":
        fill("filler")
        end = time.monotonic() + 3 * {LEASE}
        while roles.lost is None and time.monotonic() < end:
            time.sleep(0.02)
    said["lost"] = roles.lost and (type(roles.lost).__name__, roles.lost.exit_code, str(roles.lost))
    said["permits"] = held(roles.permit)
    said["files"] = sorted(path.name for path in (state / "locks").iterdir())
said["left"] = sorted(path.name for path in (state / "locks").iterdir())
print(json.dumps(said))
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


def on_small_disk(state: Path, filled: str) -> Mapping[str, Any]:
    """What a process says of a role that it takes, on a disk that is filled before or while it has it."""
    if not can_mount():
        pytest.skip("no file system can be mounted here, so none can be full")
    command = [*with_disk(str(state), "64k"), sys.executable, "-c", KEEP, str(state), filled]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def test_a_lease_is_kept_on_a_disk_that_is_full_and_no_draft_is_left(state: Path) -> None:
    said = on_small_disk(state, "while")
    assert (said["taken"], said["lost"], said["permits"]) == (None, None, None)
    assert said["files"] == ["target.dr.1.lease", "target.dr.1.spare", "target.dr.lock"]
    assert said["left"] == ["target.dr.1.lease", "target.dr.lock"]


def test_a_role_that_can_not_be_taken_on_a_full_disk_is_nobody_s_and_the_disk_is_named(state: Path) -> None:
    said = on_small_disk(state, "before")
    kind, code, text = said["taken"]
    assert (kind, code) == ("Unavailable", 75)
    assert f"The disk of {state}" in text
    assert "is full (No space left on device)" in text
    assert [name for name in said["left"] if name.endswith(".lease") or name.startswith(".")] == []


def test_a_role_of_a_folder_that_is_removed_is_lost_and_nobody_is_said_to_have_taken_it(state: Path) -> None:
    with Roles(state) as roles:
        assert roles.take({ROLE: LEASE})
        for path in (state / "locks").iterdir():
            path.unlink()
        (state / "locks").rmdir()
        lock = roles.held_roles[ROLE].lease
        assert lock.keeper is not None
        lock.woken.set()
        lock.keeper.join(10)
        assert isinstance(roles.lost, StateFolderGone)
        assert (roles.lost.exit_code, str(state) in str(roles.lost)) == (75, True)


@pytest.mark.parametrize("content", [b"", b"\xff", b"three"])
def test_a_count_of_takeovers_that_can_not_be_read_is_more_than_it_can_have_been(state: Path, content: bytes) -> None:
    (state / "locks").mkdir()
    (state / "locks" / "target.dr.takeovers").write_bytes(content)
    with Roles(state) as roles:
        assert roles.take({ROLE: LEASE})
        assert roles.takeovers(ROLE) > 1_000_000


CONFIGURATION = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[state]
path = "{state}"
checkpoints = "{checkpoints}"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "file:///nowhere"
include = ["*.*"]
"""


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    config = tmp_path / "calque.toml"
    config.write_text(CONFIGURATION.format(state=tmp_path / "made" / "state", checkpoints=tmp_path / "checkpoints"))
    return APP.wiring(APP.load(config))


def test_what_an_older_calque_let_others_read_is_restricted_but_for_files_that_are_the_source_s(
    wiring: Wiring, tmp_path: Path
) -> None:
    folder, data = wiring.state, tmp_path / "data"
    for name in ("control/paused/dr.json", "journal/_delta_log/00.json", "sources/far/pins/one", "spark/python-1"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    (folder / "spark" / "python-1").chmod(0o755)
    data.write_text("rows")
    (folder / "sources" / "far" / "pins" / "two").hardlink_to(data)
    (folder / "journal" / "three").hardlink_to(data)
    (folder / "journal" / "elsewhere").symlink_to(tmp_path)
    wiring.folder.open()
    modes = {str(path.relative_to(folder)): path.lstat().st_mode & 0o777 for path in folder.rglob("*")}
    assert modes["control"] == modes["control/paused"] == modes["journal/_delta_log"] == 0o700
    assert modes["control/paused/dr.json"] == modes["journal/_delta_log/00.json"] == 0o600
    assert (modes["spark/python-1"], modes["sources/far/pins"]) == (0o700, 0o700)
    assert (modes["sources/far/pins/one"], data.stat().st_mode & 0o777) == (0o644, 0o644)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode == (tmp_path / "made").parent.stat().st_mode


def test_folders_and_files_are_this_user_s_alone_whatever_the_umask(wiring: Wiring) -> None:
    before = os.umask(0o000)
    try:
        wiring.folder.open()
        wiring.control.bump("paused/dr")
        with Roles(wiring.state) as roles:
            assert roles.take({ROLE: LEASE})
    finally:
        os.umask(before)
    paths = [wiring.state, *wiring.state.rglob("*"), Path(wiring.config.state.checkpoints)]
    assert {(path.is_dir(), path.stat().st_mode & 0o777) for path in paths} == {(True, 0o700), (False, 0o600)}


def test_the_folder_of_another_user_is_refused_and_he_is_named(wiring: Wiring) -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    wiring.folder.open()
    wiring.control.put("identity", {"id": "1"})
    os.chown(wiring.state / "control", 4711, -1)
    for write in (wiring.folder.open, lambda: wiring.control.put("paused/dr", {})):
        with pytest.raises(StateUnusable, match="User 4711 has written it"):
            write()
    assert wiring.control.read("identity") == {"id": "1"}


def test_a_folder_on_a_read_only_file_system_is_refused(state: Path) -> None:
    if not can_mount():
        pytest.skip("no file system can be mounted here")
    script = 'mount -t tmpfs tmpfs "$1" && mount -o remount,ro "$1" && exec "$2" -c "$3" "$1"'
    said = (
        "import sys; from calque.adapters.control import ControlStore\n"
        "try: ControlStore(sys.argv[1] + '/control').put('paused/dr', {})\n"
        "except Exception as error: print(type(error).__name__, error.exit_code, error)"
    )
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", str(state), sys.executable, said]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("StateUnusable 65 The control record paused/dr can't be reached"), done.stderr
    assert "is read-only" in done.stdout


def test_nothing_is_left_of_a_record_that_found_no_room(state: Path) -> None:
    if not can_mount():
        pytest.skip("no file system can be mounted here, so none can be full")
    said = (
        "import sys; from calque.adapters.control import ControlStore\n"
        "try: ControlStore(sys.argv[1] + '/control').put('paused/dr', {'text': 'x' * 100_000})\n"
        "except Exception as error: print(type(error).__name__, error.exit_code, error)"
    )
    listed = said + "\nimport os; print(os.listdir(sys.argv[1] + '/control/paused'))"
    command = [*with_disk(str(state), "32k"), sys.executable, "-c", listed, str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    first, second = done.stdout.splitlines()
    assert first.startswith("Unavailable 75 The control record paused/dr can't be reached. The disk of "), done.stderr
    assert second == "[]"


def test_records_keep_working_in_a_folder_that_was_made_by_hand(state: Path) -> None:
    ControlStore(state / "control").put("a", {"n": 1})
    assert ControlStore(state / "control").read("a") == {"n": 1}
