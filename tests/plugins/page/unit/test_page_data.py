"""The answers of a process to its page: problems, orders of tables, exports, sizes, and what it says of itself."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.control.actions import pause
from calque.core.records.lifecycle import State
from calque.core.records.reached_state import PAUSED
from calque.engine.sides.table_states import TableStatus
from calque.model.files import File
from calque.model.ledger import Epoch, NotLiveReason, ObjectRow, TableRow, TableState
from calque.model.names import TableName
from calque.plugins.page.run.about import about
from calque.plugins.page.run.console import PageData
from calque.plugins.page.run.routes import FOLDER
from calque.plugins.page.run.table_list import COLUMNS, TableOrder, TableQuery, as_csv, as_json, in_order
from calque.plugins.page.run.table_sizes import TableSize, counted_sizes
from calque.resources import package_versions
from kernel.unit.test_serving import SILENT, WELL, read, served
from support.worlds.pages import POSITION, page_of, put

LIVE = TableStatus(State.LIVE, POSITION)
HELD = TableStatus(State.QUARANTINED, 700, "held: its objects would be dropped", 700, NotLiveReason.HELD)
PAUSED_ROW = TableStatus(State.PAUSED, 650, f"{PAUSED} by an operator")
WAITS = TableStatus(State.WAITING, 600, "the files of event 601 are not known yet", 601)
ROWS = {
    TableName("sales", "live"): LIVE,
    TableName("sales", "held"): HELD,
    TableName("hr", "paused"): PAUSED_ROW,
    TableName("hr", "waits"): WAITS,
    TableName("hr", "new"): TableStatus(State.UNKNOWN),
}
EPOCH = Epoch(1, 700, 0, "2026-11-28T13:13:04.000", "window", tables=3, quarantined=("sales.held",))


@pytest.fixture
def page(tmp_path: Path) -> PageData:
    """A process with one of the two targets of its configuration, `lake` being the other. The target has the tables of
    `ROWS`, and the source's events were seen an hour ago and later."""
    made = page_of(
        tmp_path, 1, f'[targets.lake]\nmetastore = "thrift://127.0.0.1:9"\nwarehouse = "file:{tmp_path}/lake"'
    )
    part = made.targets()["t00"]
    put(part, ROWS)
    now = time.time()
    for event, at in ((500, now - 9000), (605, now - 3600), (655, now - 1800), (POSITION, now - 900)):
        part.stream.head_times.note_head(event, at)
    return made


def overview(page: PageData) -> dict[str, Any]:
    found = json.loads(json.dumps(page.look()))
    assert isinstance(found, dict)
    return found


def test_held_paused_and_late_tables_are_problems_beside_a_target_without_a_process(page: PageData) -> None:
    pause(page.run.wiring, "t00", ["hr.paused"])
    page.read_folder()
    found = overview(page)
    assert [one["what"] for one in found["problems"]] == [
        "lake has no process",
        "sales.held is held at t00",
        "hr.waits is late at t00",
        "hr.paused is paused at t00",
    ]
    assert (found["problem_count"], found["headline"]) == (4, "lake has no process")
    paused = found["problems"][-1]
    assert paused["command"] == "calque resume --target t00 --tables hr.paused"
    assert time.time() - 60 < paused["since"] <= time.time()
    late = found["problems"][-2]
    assert late["since"] == pytest.approx(time.time() - 3600, abs=60)
    assert found["unserved"] == ["lake"]


def test_of_many_objects_in_quarantine_few_are_listed_and_all_are_counted(page: PageData) -> None:
    rows = {TableName("db", f"t{number:04}"): HELD for number in range(1_000)}
    put(page.targets()["t00"], rows)
    page.read_folder()
    found = overview(page)
    assert (len(found["problems"]), found["problem_count"]) == (100, 1_001)


def test_a_table_is_in_quarantine_since_the_epoch_that_told_it_or_since_it_was_seen(tmp_path: Path) -> None:
    page = page_of(tmp_path, 1)
    part = page.targets()["t00"]
    part.current.target.side().ledger.publish(EPOCH, [], [])
    put(part, {TableName("sales", "held"): HELD, TableName("sales", "seen"): replace(HELD, why=NotLiveReason.OWN)})
    page.read_folder()
    began = time.time()
    since = {one["table"]: one["since"] for one in overview(page)["problems"]}
    assert since["sales.held"] == 1_795_871_584.0
    assert began <= since["sales.seen"] <= time.time()
    assert {one["table"]: one["since"] for one in overview(page)["problems"]} == since


def test_the_newest_epochs_are_told_with_their_times_as_numbers(tmp_path: Path) -> None:
    page = page_of(tmp_path, 1)
    ledger = page.targets()["t00"].current.target.side().ledger
    for number in range(1, 13):
        at = f"2026-11-28T13:13:{number:02}.000+00:00"
        ledger.publish(replace(EPOCH, epoch=number, event_id=700 + number, published_at=at), [], [])
    page.read_folder()
    epochs = overview(page)["epochs"]
    assert [one["epoch"] for one in epochs] == list(range(12, 2, -1))
    assert epochs[0]["at"] == 1_795_871_592.0


def test_a_target_that_has_no_replica_open_shows_what_was_reported_last_and_one_that_never_ran_nothing(
    tmp_path: Path,
) -> None:
    page = page_of(tmp_path, 2)
    parts = page.targets()
    for part in parts.values():
        part.current.replica = None
    parts["t00"].stream.head_times.note_head(POSITION + 3, time.time() - 50)
    parts["t00"].report.last_reported = {"position": POSITION, "epoch": 3}
    known, new = overview(page)["targets"]
    assert (known["position"], known["epoch"], known["lag_events"]) == (POSITION, 3, 3)
    assert known["lag_seconds"] == pytest.approx(50, abs=20)
    assert (new["position"], new["epoch"], new["lag_events"], new["as_of"]) == (None, None, 0, None)


ORDERS = {
    TableOrder.NAME: ["hr.new", "hr.paused", "hr.waits", "sales.held", "sales.live"],
    TableOrder.STATE: ["sales.held", "hr.new", "hr.paused", "hr.waits", "sales.live"],
    TableOrder.LAG: ["hr.new", "hr.waits", "hr.paused", "sales.held", "sales.live"],
    TableOrder.SIZE: ["hr.waits", "sales.live", "hr.new", "hr.paused", "sales.held"],
}
SIZES = {TableName("sales", "live"): TableSize(1, 10), TableName("hr", "waits"): TableSize(1, 2_000)}


@pytest.mark.parametrize("order", list(TableOrder))
def test_tables_are_sorted_over_all_pages_and_both_ways(page: PageData, order: TableOrder) -> None:
    rows = page.targets()["t00"].report.find_all_tables(lambda _: True, "")
    query = TableQuery("t00", order=order)
    assert [str(row.name) for row in in_order(rows, query, SIZES)] == ORDERS[order]
    assert [str(row.name) for row in in_order(rows, replace(query, is_turned=True), SIZES)] == ORDERS[order][::-1]


def test_a_page_of_tables_is_cut_after_it_is_sorted(page: PageData) -> None:
    found: Any = page.tables(TableQuery("t00", "hr", order=TableOrder.LAG, offset=1, limit=1))
    [row] = found["tables"]
    assert (found["total"], row["table"], row["shows"], row["lag_events"]) == (3, "hr.waits", 600, POSITION - 600)
    assert row["lag_seconds"] == pytest.approx(3600, abs=60)


def test_an_export_has_every_table_of_the_search_in_its_order(page: PageData) -> None:
    query = TableQuery("t00", "hr", offset=2, limit=1, order=TableOrder.LAG)
    as_objects = json.loads(b"".join(as_json(page.every_table(query))))
    assert [row["table"] for row in as_objects] == ["hr.new", "hr.waits", "hr.paused"]
    assert tuple(as_objects[0]) == COLUMNS
    lines = list(csv.DictReader(StringIO(b"".join(as_csv(page.every_table(query))).decode())))
    assert [line["table"] for line in lines] == ["hr.new", "hr.waits", "hr.paused"]
    assert lines[1]["reason"] == WAITS.reason


@pytest.mark.parametrize("count", [0, 1, 1_000, 1_001])
def test_an_export_in_pieces_is_one_document(count: int) -> None:
    rows = [dict.fromkeys(COLUMNS, f'"{number},\n') for number in range(count)]
    assert len(json.loads(b"".join(as_json(rows)))) == count
    assert len(list(csv.DictReader(StringIO(b"".join(as_csv(rows)).decode(), newline="")))) == count


def test_an_export_is_served_as_a_file_and_any_other_form_or_order_is_refused(page: PageData) -> None:
    console = replace(SILENT, every_table=page.every_table)
    with served(lambda: WELL, console=console) as serving:
        status, text = read(serving, "/api/export?target=t00&format=csv&order=-lag")
        assert (status, text.splitlines()[1].split(",")[0]) == (200, "sales.live")
        assert read(serving, "/api/export?target=t00&format=json")[0] == 200
        for asked in ("format=xml", "format=csv&order=colour", "format=csv&order=--lag"):
            assert read(serving, f"/api/export?target=t00&{asked}")[0] == 400
        assert read(serving, "/api/export?target=elsewhere&format=csv")[0] == 400


def test_a_process_says_its_versions_its_place_and_its_metastores(page: PageData) -> None:
    said: Any = page.console().about()
    assert said["versions"] == package_versions()
    assert said["configuration"].endswith("calque.toml")
    assert said["sources"] == [{"name": "hq", "metastore": "thrift://127.0.0.1:1"}]
    assert [target["name"] for target in said["targets"]] == ["t00", "lake"]
    assert said["docs"]["url"] is None or said["docs"]["url"].startswith("https://")
    assert Path(said["docs"]["folder"], "operations.md").is_file()


def test_a_warehouse_whose_container_stands_before_its_host_is_shown_whole(tmp_path: Path) -> None:
    file, warehouse = tmp_path / "calque.toml", "abfss://lake@account.dfs.core.windows.net/dr"
    file.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://hms:9083"\n'
        f'[targets.dr]\nmetastore = "thrift://dr:9083"\nwarehouse = "{warehouse}"\n'
    )
    said: Any = about(APP.load(file), 0.0)
    assert said["targets"][0]["warehouse"] == warehouse


def row(table: str, partition: str, change: str, sizes: tuple[int, ...] = (), **others: Any) -> ObjectRow:
    files = tuple(File(f"f{number}", size, 1) for number, size in enumerate(sizes))
    fields: dict[str, Any] = {"incarnation": "i", "event_id": 1, "fingerprint": "x" if files else "", **others}
    return ObjectRow("d", table, partition, change=change, files=files, **fields)


def sizes_after(tmp_path: Path, *epochs: list[ObjectRow]) -> Mapping[str, TableSize]:
    ledger = page_of(tmp_path, 1).targets()["t00"].current.target.ledger()
    for number, rows in enumerate(epochs, 1):
        steps = [replace(one, step=step) for step, one in enumerate(rows)]
        ledger.publish(replace(EPOCH, epoch=number, event_id=number), steps, [TableRow("d", "t", TableState.LIVE, 1)])
    return {name.table: size for name, size in counted_sizes(ledger.view()).items()}


CREATED = row("t", "", "create_table", definition="{}")


def test_sizes_are_those_of_the_newest_rows_of_what_still_exists(tmp_path: Path) -> None:
    found = sizes_after(
        tmp_path,
        [CREATED, row("t", "ds=1", "add_partition", (10, 20)), row("t", "ds=2", "add_partition", (1,))],
        [replace(CREATED, table=name, fingerprint="x", files=(File("f", 7, 1),)) for name in ("plain", "gone")],
        [row("t", "ds=1", "overwrite", (5,)), row("t", "ds=2", "drop_partition"), row("gone", "", "drop_table")],
    )
    assert found == {"t": TableSize(1, 5), "plain": TableSize(1, 7)}


def test_a_rename_takes_the_size_along(tmp_path: Path) -> None:
    link: dict[str, Any] = {"incarnation": "i", "event_id": 5}
    found = sizes_after(
        tmp_path,
        [CREATED, row("t", "ds=1", "add_partition", (10, 20))],
        [row("t", "", "rename_away", **link), row("u", "", "rename_table", **link)],
    )
    assert found == {"u": TableSize(2, 30)}


def test_no_size_is_made_up_of_a_table_that_the_ledger_does_not_know_whole(tmp_path: Path) -> None:
    delta = row("delta", "", "create_table", definition="{}", delta_version=3)
    assert sizes_after(tmp_path, [row("found", "ds=1", "found", (10,)), delta]) == {}


def test_of_a_ledger_without_rows_no_size_is_known(tmp_path: Path) -> None:
    assert sizes_after(tmp_path) == {}


def test_the_page_s_files_ask_no_other_host_and_have_no_script_or_style_in_line() -> None:
    html = (FOLDER / "index.html").read_text()
    assert "style=" not in html
    assert html.count("<script") == html.count("<script src=") + html.count('<script type="module" src=')
    for file in FOLDER.iterdir():
        if file.suffix in (".js", ".css", ".html") and not file.name.startswith("uPlot"):
            text = file.read_text().replace("http://www.w3.org/2000/svg", "")
            assert "://" not in text.replace("xmlns='", ""), file.name
