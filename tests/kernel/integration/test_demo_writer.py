"""The demo's writer against real metastores: every kind of change, and files where they should be after it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from calque.demo.changes import CHANGES
from calque.demo.source import Source
from calque.demo.warehouse import create_sample
from calque.demo.writer import Step, Writer
from calque.model.names import EventId
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient

Version = Literal["3.1.3", "4.2.0"]
VERSIONS: tuple[Version, ...] = ("3.1.3", "4.2.0")
SEED, STEPS = 200, 150
"""Enough, with this seed, for every kind of change."""


@dataclass(slots=True)
class Written:
    """What a writer did to one metastore. `ends` has the newest event id before the first step and after each."""

    source: Source
    writer: Writer
    steps: list[Step] = field(default_factory=list)
    ends: list[EventId] = field(default_factory=list)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Written]]:
    """The same writer at both versions, side by side."""
    with ThreadPoolExecutor() as pool:
        started = list(pool.map(partial(start, tmp_path_factory.mktemp("written")), VERSIONS))
        try:
            yield dict(zip(VERSIONS, pool.map(write, started), strict=True))
        finally:
            for metastore in started:
                metastore.stop()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_table_holds_what_the_writer_thinks_it_holds(written: dict[str, Written], version: str) -> None:
    source = written[version].source
    assert source.actual_files() == source.expected_files()


@pytest.mark.parametrize("version", VERSIONS)
def test_databases_views_and_functions_are_those_that_the_writer_thinks_are_there(
    written: dict[str, Written], version: str
) -> None:
    source = written[version].source
    catalog = source.client.catalog
    assert sorted(catalog.databases()) == sorted([*source.databases, "default"])
    for database in source.databases:
        there = {name.table for name in (*source.tables, *source.views) if name.database == database}
        assert set(catalog.tables(database)) == there
        functions = {name.table for name in source.functions if name.database == database}
        assert set(catalog.functions(database)) == functions


@pytest.mark.parametrize("version", VERSIONS)
def test_every_step_is_in_the_log(written: dict[str, Written], version: str) -> None:
    ends = written[version].ends
    assert [step for step, was, now in zip(written[version].steps, ends, ends[1:], strict=False) if was == now] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_of_change_is_made(written: dict[str, Written], version: str) -> None:
    assert set(written[version].writer.counts) == set(CHANGES)


def test_equal_seeds_make_equal_changes(written: dict[str, Written]) -> None:
    old, new = (written[version] for version in VERSIONS)
    assert old.steps == new.steps
    assert old.source.expected_files().keys() == new.source.expected_files().keys()


def start(directory: Path, version: Version) -> Metastore:
    return Metastore.start(MetastoreSettings(version=version), directory / version)


def write(metastore: Metastore) -> Written:
    client = HiveClient(metastore.uri)
    source = Source(client, metastore.directory / "data")
    create_sample(source)
    written = Written(source, Writer(source, SEED), ends=[client.current()])
    for _ in range(STEPS):
        written.steps.append(written.writer.step())
        written.ends.append(client.current())
    return written
