"""Options of `format("calque")`, as Spark gives them: names in lower case, values as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

import calque
from calque.app import APP
from calque.errors import Refused
from calque.model.names import TableName
from calque.model.secrets import VariableSecret
from calque.plugins.epoch_reader.api.source_options import ChangeOptions, Use, address_of, change_options, require_known
from calque.plugins.epoch_reader.engine.feed import Starting
from calque.plugins.epoch_reader.wiring import LedgerAddress
from calque.wiring.wiring import Wiring
from support.worlds.recorded_ledger import SECOND, TEXT, recorded_ledger


def wired(config: str) -> Wiring:
    return APP.wiring(APP.load(config))


def given(**options: object) -> dict[str, str]:
    return {name.lower().replace("__", "."): str(value) for name, value in options.items()}


def options_of(*uses: Use, **options: object) -> ChangeOptions:
    return change_options(given(**options), *(uses or (Use.EPOCH, Use.STREAM)))


def test_a_stream_begins_at_the_earliest_epoch_and_takes_a_hundred_at_once() -> None:
    assert options_of(ledger="l") == ChangeOptions((), Starting.EARLIEST, 100, None, None)


def test_all_that_is_given_is_read() -> None:
    assert options_of(Use.STREAM, startingEpoch="Latest", maxEpochsPerTrigger=7) == ChangeOptions(
        starting=Starting.LATEST, most=7
    )
    assert options_of(Use.STREAM, startingEpoch=12).starting == 12
    assert options_of(Use.EPOCH, epoch=3).epoch == 3
    assert options_of(Use.EPOCH, event=812).event == 812


@pytest.mark.parametrize(
    ("text", "takes", "leaves"),
    [
        ("sales.*", "sales.orders", "hr.staff"),
        (" hr.staff , sales.o* ", "sales.orders", "sales.lines"),
        ("/s.{1,9}[.]orders/,hr.*", "sales.orders", "sales.lines"),
        ("hr.*, /s.{1,9}[.]orders/", "hr.staff", "sales.lines"),
        ("SALES.Orders", "sales.orders", "sales.order"),
    ],
)
def test_tables_are_chosen_by_patterns_as_include_has_them(text: str, takes: str, leaves: str) -> None:
    chooses = options_of(tables=text).takes()
    assert chooses(TableName(*takes.split(".")))
    assert not chooses(TableName(*leaves.split(".")))


@pytest.mark.parametrize(
    ("uses", "options", "error"),
    [
        ((), {"tabels": "a.b"}, 'There is no option "tabels". The nearest is tables.'),
        ((), {"startingepok": 1}, 'no option "startingepok". The nearest is startingEpoch.'),
        ((), {"storage__key": "k"}, "option storage.key is given without the option ledger"),
        ((), {"ledger": "l", "config": "c"}, "options ledger and config exclude each other"),
        ((), {"ledger": "l", "target": "dr"}, "options ledger and target exclude each other"),
        ((Use.EPOCH,), {"epoch": 1, "event": 2}, "options epoch and event exclude each other"),
        ((Use.STREAM,), {"event": 2}, "Streams have no option event."),
        ((Use.EPOCH,), {"startingepoch": 2}, "changes have no option startingepoch. It is an option of streams."),
        ((Use.TABLE,), {"ledger": "l", "path": "a.b"}, "Reads of a table have no option ledger."),
        ((Use.TABLE,), {"evnt": 1, "path": "a.b"}, 'There is no option "evnt". The nearest is event.'),
        ((), {"startingEpoch": 0}, '"0" is no value of the option startingEpoch. Epochs are numbered from 1.'),
        ((), {"startingEpoch": -3}, "Write a positive number, earliest or latest."),
        ((), {"startingEpoch": "newest"}, '"newest" is no value of the option startingEpoch.'),
        ((), {"startingEpoch": "9" * 99}, "is no value of the option startingEpoch."),
        ((), {"maxEpochsPerTrigger": 0}, '"0" is no value of the option maxEpochsPerTrigger.'),
        ((), {"maxEpochsPerTrigger": "1.5"}, "Write a positive number."),
        ((), {"epoch": "٣"}, "is no value of the option epoch."),
        ((), {"event": "e"}, '"e" is no event id.'),
        ((), {"tables": " , "}, "The option tables has no pattern."),
        ((), {"tables": "sales"}, 'Option tables: pattern "sales" names no table.'),
        ((), {"tables": "a.b, /x[/"}, 'Option tables: "/x[/" is no regular expression.'),
    ],
)
def test_what_means_nothing_is_refused(uses: tuple[Use, ...], options: dict[str, Any], error: str) -> None:
    with pytest.raises(Refused) as refused:
        options_of(*uses, **options) if uses != (Use.TABLE,) else require_known(given(**options), *uses)
    assert error in str(refused.value)


def test_a_ledger_is_a_path_or_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert address_of(given(ledger="ledgers/dr"), wired) == LedgerAddress(f"{tmp_path}/ledgers/dr", {})
    assert address_of(given(ledger=f"file://{tmp_path}/dr/"), wired) == LedgerAddress(f"{tmp_path}/dr", {})
    with pytest.raises(Refused, match="Option ledger: it has a password in it"):
        address_of(given(ledger="s3://user:password@bucket/dr"), wired)
    with pytest.raises(Refused, match='Option ledger: "" is no path'):
        address_of(given(ledger=""), wired)


def test_a_ledger_in_a_store_has_options_and_its_secrets_come_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_SECRET", "hidden")
    address = address_of(
        given(ledger="s3://bucket/dr", storage__endpoint_url="http://s", storage__secret_env="STORE_SECRET"), APP.load
    )
    assert address.folder == "s3://bucket/dr"
    assert address.storage["aws_endpoint_url"] == "http://s"
    assert address.storage["aws_secret_access_key"] == VariableSecret("STORE_SECRET")
    with pytest.raises(Refused, match=r"option storage\.secret is a secret\..*Set storage\.secret_env") as refused:
        address_of(given(ledger="s3://bucket/dr", storage__secret="hidden"), wired)
    assert "hidden" not in str(refused.value)


def test_a_configuration_says_where_the_ledger_of_its_target_is(tmp_path: Path) -> None:
    config = recorded_ledger(tmp_path)
    address = LedgerAddress(f"{tmp_path}/state/ledgers/dr", {})
    assert address_of(given(config=config), wired) == address_of(given(config=config, target="dr"), wired) == address
    config.write_text(TEXT + SECOND)
    with pytest.raises(Refused, match=r"No target is named. There are 2. Name one: dr, backup"):
        address_of(given(config=config), wired)


def test_the_source_has_the_columns_of_changes_where_no_table_is_named() -> None:
    source = calque.EpochSource(CaseInsensitiveDict(given(ledger="l")))
    schema = source.schema()
    assert isinstance(schema, StructType)
    assert schema.simpleString() == (
        "struct<_change_type:string,epoch:bigint,published_at:timestamp,event_id:bigint,object_event_id:bigint,"
        "kind:string,database:string,table:string,partition:string,incarnation:string,location:string,"
        "delta_version:bigint,snapshot_id:bigint,exception:string>"
    )
    with pytest.raises(Refused, match='There is no option "starting"'):
        calque.EpochSource(CaseInsensitiveDict(given(ledger="l", starting=1))).schema()


def test_a_table_is_no_stream() -> None:
    source = calque.EpochSource(CaseInsensitiveDict(given(path="sales.orders")))
    with pytest.raises(Refused, match=r"table sales\.orders can't be read as a stream"):
        source.simpleStreamReader(StructType())
