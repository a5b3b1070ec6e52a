"""The stream of epochs and the read of one, over a ledger on disk, without Spark."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.delta.ledger import DeltaLedger
from calque.errors import Refused, Unavailable
from calque.model.files import File
from calque.model.ledger import TableRow, TableState
from calque.plugins.epoch_reader.api.change_stream import EpochChangesReader, EpochStreamReader
from calque.plugins.epoch_reader.api.source_options import ChangeOptions
from calque.plugins.epoch_reader.engine.feed import Starting
from calque.plugins.epoch_reader.wiring import LedgerAddress
from plugins.epoch_reader.ledgers import change, epoch, ledger_with, publish


@dataclass
class Log:
    """A ledger that is forgotten while it is read, or does not answer; and what says where it is."""

    ledger: DeltaLedger
    forgets: int = 0
    silent: int = 0
    folder: str = "the ledger"

    def open(self) -> Log:
        return self

    def is_there(self) -> bool:
        return self.ledger.is_there()

    def numbers(self) -> range:
        if self.silent:
            self.silent -= 1
            raise Unavailable("The store does not answer")
        return self.ledger.numbers()

    def changes(self, numbers: range) -> object:
        found = self.ledger.changes(numbers)
        self.ledger.forget(self.forgets)
        return found


def stream(folder: Path, wait: float = 0.0, **options: Any) -> EpochStreamReader:
    return EpochStreamReader(LedgerAddress(str(folder), {}), ChangeOptions(**options), wait)


def batch(folder: Path, **options: Any) -> list[tuple[int, str]]:
    reader = EpochChangesReader(LedgerAddress(str(folder), {}), ChangeOptions(**options))
    [partition] = reader.partitions()
    return told(reader.read(pickle.loads(pickle.dumps(partition))))


def told(batches: Any) -> list[tuple[int, str]]:
    return [(row["epoch"], row["table"]) for each in batches for row in each.to_pylist()]


def read(reader: EpochStreamReader, after: int) -> tuple[list[tuple[int, str]], int]:
    rows, end = reader.read({"epoch": after})
    return told(rows), end["epoch"]


def both(*numbers: int) -> list[tuple[int, str]]:
    return [(number, table) for number in numbers for table in ("orders", "staff")]


def test_a_stream_reads_epochs_in_order_and_no_more_at_once_than_it_may(tmp_path: Path) -> None:
    ledger_with(tmp_path, 5)
    reader = stream(tmp_path, most=2)
    assert reader.initialOffset() == {"epoch": 0}
    assert read(reader, 0) == (both(1, 2), 2)
    assert read(reader, 2) == (both(3, 4), 4)
    assert read(reader, 4) == (both(5), 5)
    assert read(reader, 5) == ([], 5)


def test_what_is_played_again_has_the_same_rows(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 5)
    reader = stream(tmp_path, most=3)
    first, end = read(reader, 1)
    publish(ledger, 6)
    in_a_task = pickle.loads(pickle.dumps(reader))
    assert told(in_a_task.readBetweenOffsets({"epoch": 1}, {"epoch": end})) == first == both(2, 3, 4)
    assert told(in_a_task.readBetweenOffsets({"epoch": 4}, {"epoch": 4})) == []


def test_rows_are_a_list_that_spark_can_copy(tmp_path: Path) -> None:
    ledger_with(tmp_path, 1)
    rows, _ = stream(tmp_path).read({"epoch": 0})
    assert told(copy.copy(rows)) == told(copy.copy(rows)) == both(1)


def test_a_restarted_query_goes_on_behind_its_offset_wherever_it_was_to_start(tmp_path: Path) -> None:
    ledger_with(tmp_path, 4)
    assert read(stream(tmp_path, starting=Starting.LATEST), 2) == (both(3, 4), 4)


@pytest.mark.parametrize(("starting", "before"), [(Starting.EARLIEST, 2), (Starting.LATEST, 4), (3, 2), (5, 4), (6, 5)])
def test_the_first_epoch_is_the_one_that_is_named(tmp_path: Path, starting: Starting | int, before: int) -> None:
    ledger_with(tmp_path, 5).forget(3)
    assert stream(tmp_path, starting=starting).initialOffset() == {"epoch": before}


def test_the_first_epoch_stays_the_same_while_others_are_published(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 2)
    reader = stream(tmp_path, starting=Starting.LATEST)
    assert reader.initialOffset() == {"epoch": 1}
    publish(ledger, 3)
    assert reader.initialOffset() == {"epoch": 1}


def test_an_epoch_that_is_not_the_next_one_is_no_start(tmp_path: Path) -> None:
    ledger_with(tmp_path, 5)
    with pytest.raises(Refused, match=r"Epoch 7 of .* is in the future. Its newest epoch is 5. Begin at 6"):
        stream(tmp_path, starting=7).initialOffset()


def test_what_was_forgotten_is_an_error_and_never_passed_over(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 6)
    behind, far_behind = stream(tmp_path, most=2), stream(tmp_path)
    assert read(behind, 0) == (both(1, 2), 2)
    ledger.forget(5)
    with pytest.raises(Refused, match=r"Epochs 3 to 4 of .* can't be read any more.*`grace`.*left is 5.*at epoch 5"):
        read(behind, 2)
    with pytest.raises(Refused, match=r"Epochs 1 to 4 of "):
        read(far_behind, 0)
    with pytest.raises(Refused, match=r"Epoch 4 of "):
        list(stream(tmp_path).readBetweenOffsets({"epoch": 3}, {"epoch": 5}))
    with pytest.raises(Refused, match=r"Epoch 4 of "):
        stream(tmp_path, starting=4).initialOffset()
    assert read(stream(tmp_path), 4) == (both(5, 6), 6)


def test_what_is_forgotten_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    log = Log(ledger_with(tmp_path, 3), forgets=2)
    with pytest.raises(Refused, match=r"Epoch 1 of the ledger can't be read any more"):
        EpochStreamReader(log, ChangeOptions(), 0.0).read({"epoch": 0})


def test_a_ledger_that_does_not_answer_is_waited_for_but_not_by_a_query_that_is_to_end(tmp_path: Path) -> None:
    log = Log(ledger_with(tmp_path, 1))
    reader = EpochStreamReader(log, ChangeOptions(), 0.0)
    log.silent = 1
    assert read(reader, 0) == ([], 0)
    assert read(reader, 0) == (both(1), 1)
    reader.prepareForTriggerAvailableNow()
    log.silent = 1
    with pytest.raises(Unavailable, match="The store does not answer"):
        read(reader, 0)


def test_rows_that_stay_of_forgotten_epochs_are_no_news(tmp_path: Path) -> None:
    ledger = DeltaLedger(str(tmp_path))
    kept = change("create_table", files=(File("f", 1, 0, ""),), definition="{}")
    ledger.publish(epoch(1), [kept], [])
    publish(ledger, 2, 3)
    ledger.forget(3)
    assert stream(tmp_path).initialOffset() == {"epoch": 2}
    assert read(stream(tmp_path), 2) == (both(3), 3)


def test_rows_of_a_window_that_died_do_not_count(tmp_path: Path) -> None:
    def die(failpoint: str) -> None:
        if failpoint == "ledger.objects":
            raise KeyboardInterrupt

    ledger_with(tmp_path, 2)
    with pytest.raises(KeyboardInterrupt):
        publish(DeltaLedger(str(tmp_path), failpoint=die), 3)
    reader = stream(tmp_path)
    assert read(reader, 0) == (both(1, 2), 2)
    assert read(reader, 2) == ([], 2)
    assert told(reader.readBetweenOffsets({"epoch": 2}, {"epoch": 3})) == []


def test_chosen_tables_alone_are_read_and_epochs_without_them_are_gone_through(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 2)
    ledger.publish(epoch(3), [], [])
    reader = stream(tmp_path, tables=("hr.*",))
    assert read(reader, 0) == ([(1, "staff"), (2, "staff")], 3)


def test_a_read_waits_for_the_next_epoch_and_returns_with_it(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 1)
    reader = stream(tmp_path, wait=30.0)
    publisher = threading.Timer(0.2, publish, (ledger, 2))
    publisher.start()
    began = time.monotonic()
    assert read(reader, 1) == (both(2), 2)
    assert 0.1 < time.monotonic() - began < 20
    publisher.join()


def test_a_query_that_is_to_end_reads_what_is_there_at_its_beginning(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, 3)
    reader = stream(tmp_path, wait=60.0, most=2)
    reader.prepareForTriggerAvailableNow()
    publish(ledger, 4)
    assert read(reader, 0) == (both(1, 2), 2)
    assert read(reader, 2) == (both(3), 3)
    assert read(reader, 3) == ([], 3)
    assert read(reader, 4) == ([], 4)


@pytest.mark.parametrize("starting", [Starting.EARLIEST, Starting.LATEST, 1])
def test_a_stream_waits_for_the_first_epoch_of_a_ledger(tmp_path: Path, starting: Starting | int) -> None:
    ledger = DeltaLedger(str(tmp_path))
    ledger.put_tables([TableRow("sales", "orders", TableState.READING)])
    reader = stream(tmp_path, starting=starting)
    assert reader.initialOffset() == {"epoch": 0}
    assert read(reader, 0) == ([], 0)
    with pytest.raises(Unavailable, match="has no epoch yet"):
        batch(tmp_path)
    publish(ledger, 1)
    assert read(reader, 0) == (both(1), 1)


def test_a_folder_without_a_ledger_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="There is no ledger at"):
        stream(tmp_path / "dr").initialOffset()
    with pytest.raises(Refused, match="There is no ledger at"):
        batch(tmp_path / "dr")
    assert not (tmp_path / "dr").exists()


def test_a_ledger_that_lost_its_end_is_an_error(tmp_path: Path) -> None:
    ledger_with(tmp_path, 2)
    with pytest.raises(Refused, match=r"ends at epoch 2, but epoch 5 was read of it already"):
        read(stream(tmp_path), 5)


def test_a_batch_has_the_rows_of_one_epoch(tmp_path: Path) -> None:
    ledger_with(tmp_path, 5).forget(3)
    assert batch(tmp_path) == both(5)
    assert batch(tmp_path, epoch=4) == both(4)
    assert batch(tmp_path, event=49) == batch(tmp_path, event=40, tables=()) == both(4)
    assert batch(tmp_path, tables=("sales.*",)) == [(5, "orders")]


def test_a_batch_of_what_is_gone_or_has_not_come_is_an_error(tmp_path: Path) -> None:
    ledger_with(tmp_path, 5).forget(3)
    with pytest.raises(Refused, match=r"Epoch 2 of .* can't be read any more"):
        batch(tmp_path, epoch=2)
    with pytest.raises(Refused, match=r"no epoch at or below event 29 any more.*Read event 30"):
        batch(tmp_path, event=29)
    with pytest.raises(Unavailable, match=r"There is no epoch 6 of .* yet. Its newest epoch is 5"):
        batch(tmp_path, epoch=6)
    with pytest.raises(Unavailable, match=r"has not reached event 51. Its newest epoch is of event 50"):
        batch(tmp_path, event=51)
