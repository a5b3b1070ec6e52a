"""Tables of the state, and the folder of its records, say which format they have; some formats are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.delta.evidence import DeltaEvidence
from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.delta.scans import DeltaScans
from calque.adapters.delta.snapshot import SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.adapters.delta.table_log import FORMAT, format_of
from calque.app import APP
from calque.cli import main
from calque.core.records.state_formats import require_known_format
from calque.errors import Refused
from calque.streams.job import require_known_ledgers

ROWS = pa.table({"number": pa.array([1], pa.int64())}, schema=pa.schema([pa.field("number", pa.int64(), False)]))
NEWER = 99


def table(at: Path, table_format: int) -> RangedTable:
    return RangedTable(str(at), ROWS.schema, (), None, table_format)


def append(to: RangedTable, change: SnapshotChange | None = None) -> None:
    files = to.write([ROWS])
    to.commit(lambda _: change or SnapshotChange(add=files))


def test_the_first_commit_says_the_format_and_others_do_not_repeat_it(tmp_path: Path) -> None:
    written = table(tmp_path, 3)
    append(written)
    append(written)
    commits = [file.read_text() for file in sorted((tmp_path / "_delta_log").glob("*.json"))]
    assert [f'"appId":"{FORMAT}"' in text for text in commits] == [False, True, False]
    assert format_of(table(tmp_path, 3).snapshot()) == 3


def test_a_table_that_does_not_say_its_format_has_the_first_one_and_says_it_from_its_next_commit_on(
    tmp_path: Path,
) -> None:
    append(table(tmp_path, 1))
    old = table(tmp_path, 2)
    assert format_of(old.snapshot()) == 1
    append(old)
    assert format_of(table(tmp_path, 2).snapshot()) == format_of(old.snapshot()) == 2


def test_a_handle_that_is_open_refuses_what_a_newer_calque_writes_meanwhile(tmp_path: Path) -> None:
    old = table(tmp_path, 1)
    append(old)
    append(table(tmp_path, 2))
    with pytest.raises(Refused, match=r"has format 2\. A newer calque has written it; this one knows .+ 1\. Use that"):
        old.snapshot()
    with pytest.raises(Refused):
        append(old)


def test_a_format_two_numbers_back_is_refused_with_the_way(tmp_path: Path) -> None:
    append(table(tmp_path, 1))
    assert format_of(table(tmp_path, 2).snapshot()) == 1
    skipping = table(tmp_path, 3)
    with pytest.raises(
        Refused,
        match=r"has format 1\. An older calque has written it; this one takes over format 2 and no older one\. "
        r"Let a version that writes format 2 go on with it first",
    ):
        skipping.snapshot()
    with pytest.raises(Refused):
        append(skipping)
    append(table(tmp_path, 2))
    append(skipping)
    assert format_of(skipping.snapshot()) == 3


@pytest.mark.parametrize(("number", "newest"), [(1, 1), (1, 2), (2, 2), (2, 3)])
def test_the_newest_format_and_the_one_before_are_taken(number: int, newest: int) -> None:
    require_known_format("This", number, newest)


PARTS: dict[str, Callable[[str], object]] = {
    "journal": lambda at: DeltaJournal(f"{at}/journal").last(),
    "evidence": lambda at: DeltaEvidence(f"{at}/evidence").considered(),
    "scans/found": lambda at: DeltaScans(f"{at}/scans").last(),
    "ledger/epochs": lambda at: DeltaLedger(f"{at}/ledger").last_epoch(),
    "ledger/objects": lambda at: DeltaLedger(f"{at}/ledger").headers(1),
    "ledger/tables": lambda at: DeltaLedger(f"{at}/ledger").tables(),
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_state_refuses_what_a_newer_calque_has_written(part: str, tmp_path: Path) -> None:
    PARTS[part](str(tmp_path))
    append(table(tmp_path / part, NEWER))
    with pytest.raises(Refused, match=rf"{part} has format {NEWER}\. A newer calque"):
        PARTS[part](str(tmp_path))


CONFIGURATION = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
[state]
path = "{folder}/state"
"""


COMMANDS = {
    "status": ["status"],
    "wait": ["wait", "--target", "dr", "--event-id", "1", "--timeout", "0"],
    "epochs": ["epochs", "list", "--target", "dr"],
}


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    file = tmp_path / "calque.toml"
    file.write_text(CONFIGURATION.format(folder=tmp_path))
    return str(file)


@pytest.mark.parametrize(
    ("command", "part"),
    [("status", "epochs"), ("status", "tables"), ("status", "internal"), ("wait", "internal"), ("epochs", "epochs")],
)
def test_commands_that_read_what_a_newer_calque_has_written_end_with_65(
    command: str, part: str, configuration: str, capsys: pytest.CaptureFixture[str]
) -> None:
    append(table(Path(configuration).parent / "state/ledgers/dr" / part, NEWER))
    assert main([*COMMANDS[command], "-c", configuration]) == 65
    assert f"ledgers/dr/{part} has format {NEWER}. A newer calque has written it" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["epochs", "objects", "tables", "internal"])
def test_a_run_begins_nothing_with_a_ledger_that_a_newer_calque_has_written(part: str, configuration: str) -> None:
    append(table(Path(configuration).parent / "state/ledgers/dr" / part, NEWER))
    with pytest.raises(Refused, match=rf"ledgers/dr/{part} has format {NEWER}\. A newer calque"):
        require_known_ledgers(APP.wiring(APP.load(configuration)), ["dr"])


def test_a_run_that_is_refused_for_that_ends_with_65(configuration: str) -> None:
    append(table(Path(configuration).parent / "state/ledgers/dr/internal", NEWER))
    words = [sys.executable, "-m", "calque.cli", "run", "-c", configuration]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "A newer calque has written it" in done.stderr) == (65, True)


def test_a_run_begins_nothing_in_a_folder_whose_records_a_newer_calque_has_written(configuration: str) -> None:
    folder = APP.wiring(APP.load(configuration)).folder
    folder.control.put("identity", {"id": "1", "format": NEWER})
    words = [sys.executable, "-m", "calque.cli", "run", "-c", configuration]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, f"/state has format {NEWER}. A newer calque has written it" in done.stderr) == (65, True)
    assert not {"locks", "journal", "ledgers"}.intersection(path.name for path in folder.path.iterdir())


def test_no_command_writes_at_a_target_from_such_a_folder(configuration: str) -> None:
    folder = APP.wiring(APP.load(configuration)).folder
    folder.control.put("identity", {"id": "1", "format": NEWER})
    with pytest.raises(Refused, match="A newer calque has written it"):
        folder.identity()


def test_a_folder_that_does_not_say_its_format_has_the_first_one(configuration: str) -> None:
    folder = APP.wiring(APP.load(configuration)).folder
    folder.control.put("identity", {"id": "1"})
    assert folder.identity() == "1"
