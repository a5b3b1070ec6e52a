"""Changes of epochs as a source of data, on a real Spark."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import calque
from calque.adapters.spark.session import session
from calque.sandbox import spark_jars
from plugins.epoch_reader.ledgers import ledger_with, publish
from support.places import ROOT
from support.worlds.recorded_ledger import recorded_ledger

PAGE = ROOT / "docs" / "reading-epochs.md"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    started = session("tests", spark_jars(), tmp_path_factory.mktemp("spark"))
    started.dataSource.register(calque.EpochSource)
    return started


class Consumer:
    """Keeps which epochs each batch had, in order; `fails` once, after a batch was kept."""

    def __init__(self, spark: SparkSession, folder: Path, fails: bool = False) -> None:
        self.spark, self.ledger, self.checkpoint = spark, folder / "dr", folder / "checkpoint"
        self.fails = fails
        self.batches: list[list[int]] = []

    def keep(self, batch: DataFrame, _: int) -> None:
        self.batches.append([row["epoch"] for row in batch.collect()])
        if self.fails:
            self.fails = False
            raise KeyError("the consumer died")

    def start(self, available_now: bool = True, **options: object) -> StreamingQuery:
        reader = self.spark.readStream.format("calque").option("ledger", str(self.ledger)).option("tables", "sales.*")
        for name, value in options.items():
            reader = reader.option(name, str(value))
        writer = reader.load().writeStream.foreachBatch(self.keep).option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def run(self, **options: object) -> list[list[int]]:
        """The batches of a query over all that is there."""
        self.batches = []
        self.start(**options).awaitTermination()
        return self.batches

    def epochs(self) -> list[int]:
        """Those of all batches."""
        return [number for batch in self.batches for number in batch]


@pytest.fixture
def consumer(spark: SparkSession, tmp_path: Path) -> Consumer:
    return Consumer(spark, tmp_path)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_stream_sees_epochs_in_their_order_as_they_are_published(consumer: Consumer) -> None:
    ledger = ledger_with(consumer.ledger, 2)
    query = consumer.start(available_now=False, startingEpoch="latest")
    try:
        for number in (3, 4):
            until(lambda newest=number - 1: consumer.epochs()[-1:] == [newest])  # type: ignore[misc]
            publish(ledger, number)
        until(lambda: consumer.epochs()[-1:] == [4])
        assert consumer.epochs() == [2, 3, 4]
        assert query.exception() is None
    finally:
        query.stop()


def test_a_restarted_query_goes_on_behind_its_checkpoint_until_an_epoch_is_past_its_grace(consumer: Consumer) -> None:
    ledger = ledger_with(consumer.ledger, 3)
    consumer.fails = True
    with pytest.raises(StreamingQueryException, match="the consumer died"):
        consumer.run(maxEpochsPerTrigger=2)
    assert consumer.batches == [[1, 2]]
    assert consumer.run(maxEpochsPerTrigger=2) == [[1, 2], [3]]
    publish(ledger, 4, 5)
    ledger.forget(4)
    assert consumer.run() == [[4, 5]]
    publish(ledger, 6, 7)
    ledger.forget(7)
    with pytest.raises(StreamingQueryException, match=r"Epoch 6 of .*/dr can't be read any more\. .*`grace`"):
        consumer.run()
    assert consumer.batches == []


def test_a_batch_has_the_changes_of_one_epoch(spark: SparkSession, tmp_path: Path) -> None:
    ledger_with(tmp_path, 3)
    reader = spark.read.format("calque").option("ledger", str(tmp_path))
    found = reader.load().collect()
    assert [(row["epoch"], row["_change_type"], row["database"], row["table"]) for row in found] == [
        (3, "update", "sales", "orders"),
        (3, "update", "hr", "staff"),
    ]
    assert found[0]["published_at"].timestamp() == datetime(2024, 5, 1, 10, 3, tzinfo=UTC).timestamp()
    assert [row["kind"] for row in reader.option("event", 19).option("tables", "hr.*").load().collect()] == [
        "bootstrap"
    ]


def test_a_configuration_names_the_ledger_and_mistakes_are_told(spark: SparkSession, tmp_path: Path) -> None:
    reader = spark.read.format("calque").option("config", str(recorded_ledger(tmp_path)))
    assert reader.option("epoch", 2).load().collect() == []
    with pytest.raises(AnalysisException, match=r'There is no option "epoc"\. The nearest is epoch'):
        reader.option("epoc", 2).load()


def test_the_example_of_the_page_has_each_change_once_also_with_another_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    [example] = [text for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "sqlite3" in text]
    for place in ("state/ledgers/dr", "changes.db", "checkpoints/changes"):
        assert f'"{place}"' in example
        example = example.replace(f'"{place}"', f'"{tmp_path}/{place}"')
    ledger = ledger_with(tmp_path / "state/ledgers/dr", 2)
    for _ in range(2):
        exec(compile(example, str(PAGE), "exec"), {"spark": spark})
        shutil.rmtree(tmp_path / "checkpoints")
        publish(ledger, ledger.numbers().stop)
    with closing(sqlite3.connect(tmp_path / "changes.db")) as database:
        rows = database.execute("SELECT * FROM changes").fetchall()
    types = ("insert", "update", "update")
    assert rows == [(number, kind, "sales.orders", "", "file:/dr/orders") for number, kind in enumerate(types, 1)]
