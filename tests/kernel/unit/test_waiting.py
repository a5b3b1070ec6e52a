"""A wait for an event at a target: what it answers, and what a look reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.control.actions import pause
from calque.control.waiting import EventWait
from calque.errors import Unavailable
from calque.model.ledger import Epoch, TableRow, TableState
from calque.wiring.wiring import Wiring

POSITION = 100


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    """A deployment whose target has published one epoch, with a live table."""
    path = tmp_path / "calque.toml"
    path.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
        '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    )
    wiring = APP.wiring(APP.load(path))
    live = TableRow("sales", "orders", TableState.LIVE, shows=POSITION)
    wiring.ledger("dr").publish(Epoch(1, POSITION, 0, "2024-01-01T00:00:00+00:00", "bootstrap"), (), (live,))
    return wiring


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[DeltaLedger]:
    """The ledgers whose tables were read, one for each time."""
    found, tables = [], DeltaLedger.tables

    def counted(ledger: DeltaLedger) -> object:
        found.append(ledger)
        return tables(ledger)

    monkeypatch.setattr(DeltaLedger, "tables", counted)
    return found


def test_a_target_that_is_behind_is_looked_at_without_reading_its_tables(
    wiring: Wiring, reads: list[DeltaLedger]
) -> None:
    """Many wait at a time, and look again and again, and a target may have a hundred thousand tables."""
    waited = EventWait(wiring, "dr", POSITION + 1).look()
    assert (waited.has_reached, waited.position) == (False, POSITION)
    assert reads == []
    assert EventWait(wiring, "dr", POSITION).look().has_reached
    assert len(reads) == 1


def test_a_position_is_not_enough_where_a_table_that_is_set_aside_shows_less(wiring: Wiring) -> None:
    wiring.ledger("dr").put_tables([TableRow("sales", "items", TableState.QUARANTINED, shows=7, reason="it is odd")])
    assert EventWait(wiring, "dr", 7).look().has_reached
    with pytest.raises(Unavailable, match=r"dr shows event 8 without sales\.items"):
        EventWait(wiring, "dr", 8).look()


def test_a_table_that_is_read_is_waited_for(wiring: Wiring) -> None:
    wiring.ledger("dr").put_tables([TableRow("sales", "items", TableState.READING)])
    assert not EventWait(wiring, "dr", POSITION).look().has_reached


def test_a_paused_target_is_not_waited_for(wiring: Wiring) -> None:
    pause(wiring, "dr", ())
    assert EventWait(wiring, "dr", POSITION).look().has_reached
    with pytest.raises(Unavailable, match="An operator has paused it"):
        EventWait(wiring, "dr", POSITION + 1).look()
