"""Where the journal begins: chosen once, for all targets, and foreseen as it would be chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.adapters.held_evidence import MemoryEvidence
from calque.app import APP
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused, Unavailable
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Database
from calque.streams.beginning import JournalBeginning, beginning_of
from support.memory.journal import MemoryJournal
from support.memory.metastore import HIVE_4, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage


class Site:
    """A source with nine events, and targets that start at these (None: with a bootstrap)."""

    def __init__(self, folder: Path, *starts: int | None) -> None:
        self.source = MemoryMetastore(HIVE_4, "file:/w")
        for number in range(9):
            self.source.create_database(Database(f"d{number}"))
        text = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\nallow_weak_log = true\n'
        for number, start in enumerate(starts):
            text += f'[targets.t{number}]\nmetastore = "thrift://127.0.0.1:{number + 2}"\nwarehouse = "t{number}"\n'
            text += f"start = {start}\n" if start is not None else ""
        self.file = folder / "calque.toml"
        self.file.write_text(text)

    def beginning(self, name: str = "hq") -> JournalBeginning:
        """As another process has it."""
        self.file.write_text(self.file.read_text().replace('name = "hq"', f'name = "{name}"'))
        log, reader = MemoryLog(self.source), MemoryReader(self.source)
        source = SourceSide(name, log, reader, MemoryJournal(), MemoryEvidence(), MemoryStorage())
        wiring = APP.wiring(APP.load(self.file))
        wiring.only_source()._side = source
        return beginning_of(wiring, name)


@pytest.mark.parametrize(
    ("starts", "begins"),
    [((None,), 9), ((None, None), 9), ((4,), 4), ((None, 4), 4), ((7, None, 4), 4), ((12,), 9), ((0, 3), 0)],
)
def test_a_journal_begins_where_its_source_is_or_the_first_of_its_targets_starts(
    tmp_path: Path, starts: tuple[int | None, ...], begins: int
) -> None:
    site = Site(tmp_path, *starts)
    assert site.beginning().foreseen() == begins
    assert site.beginning().event() == begins


def test_who_foresees_where_it_begins_fixes_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    assert site.beginning().foreseen() == 9
    site.source.create_database(Database("later"))
    assert site.beginning().foreseen() == 10
    assert site.beginning().event() == 10
    site.source.create_database(Database("latest"))
    assert site.beginning().foreseen() == site.beginning().event() == 10


def test_behind_a_gap_it_begins_where_the_gap_ends(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    beginning = site.beginning()
    assert beginning.event() == 9
    beginning.source.gaps().add(Gap(1, 9, 20, GapCause.PURGED, ""))
    for begins in (beginning.event, site.beginning().foreseen):
        with pytest.raises(Unavailable, match="has not begun anew"):
            begins()
    beginning.source.gaps().settle(1)
    assert beginning.event() == site.beginning().foreseen() == 20


def test_a_state_folder_of_another_source_is_refused(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    site.beginning().event()
    other = site.beginning("other")
    for begins in (other.event, other.foreseen):
        with pytest.raises(Refused, match="belongs to source hq, not other"):
            begins()
