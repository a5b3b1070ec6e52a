"""The log of a target's epochs (port `EpochLog`): the ledger on disk and in an object store."""

from __future__ import annotations

import pickle

import pytest

from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.plugins.epoch_reader.api.source_options import address_of
from calque.plugins.epoch_reader.ports import EpochLog
from plugins.epoch_reader.ledgers import publish
from support.services.objects import ObjectStore

COLUMNS = {"epoch", "database", "table", "partition", "incarnation", "event_id", "change", "location", "delta_version"}


@pytest.fixture(params=["delta", "delta-s3"])
def ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaLedger:
    if request.param == "delta-s3":
        folder, options = request.getfixturevalue("tables")
        return DeltaLedger(f"{folder}/ledger", options)
    return DeltaLedger(str(tmp_path_factory.mktemp("ledger")))


def test_a_reader_sees_what_another_handle_publishes_and_forgets(ledger: DeltaLedger) -> None:
    log: EpochLog = pickle.loads(pickle.dumps(ledger))
    assert not log.is_there()
    assert log.numbers() == range(1, 1)
    publish(ledger, 1, 2, 3, 4)
    assert log.is_there()
    assert log.numbers() == range(1, 5)
    epochs, rows = log.changes(range(2, 4))
    assert [each.epoch for each in epochs] == [2, 3]
    assert {*rows.column_names} >= COLUMNS
    assert rows.select(["epoch", "table"]).to_pylist() == [
        {"epoch": number, "table": table} for number in (2, 3) for table in ("orders", "staff")
    ]
    ledger.forget(3)
    assert log.numbers() == range(3, 5)
    assert [each.epoch for each in log.epochs()] == [3, 4]
    assert [each.epoch for each in log.changes(range(1, 9))[0]] == [3, 4]


def test_options_of_the_source_reach_a_ledger_in_a_store(
    tables: tuple[str, dict[str, str]], object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, delta_options = tables
    publish(DeltaLedger(f"{folder}/ledger", delta_options), 1)
    options = {f"storage.{name}": value for name, value in object_store.options.items() if name != "secret"}
    monkeypatch.setenv("SECRET_OF_THE_STORE", object_store.options["secret"])
    address = address_of(
        {"ledger": f"{folder}/ledger", "storage.secret_env": "SECRET_OF_THE_STORE", **options}, APP.load
    )
    assert object_store.options["secret"] not in str(address)
    assert pickle.loads(pickle.dumps(address)).open().numbers() == range(1, 2)
