"""Six faults under a running process, found out from the page alone: what is wrong, since when, and what to do."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium, which drives the browser, is not installed")

from calque.adapters.control import ControlStore
from calque.adapters.delta.journal import DeltaJournal
from calque.control.processes import processes
from calque.demo.files import storage
from calque.demo.source import Source
from calque.model.hive import Column, Table
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.services.browser import DESKTOP, Browser, browser, missing
from support.services.mounts import can_mount, filled, seen_by, with_disk
from support.services.servers import Shared
from support.services.thriftproxy import Asked, asked

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"{' and '.join(missing())} not installed"),
    pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here, so none can be full"),
]

DATABASE, WHOLE = "page_faults", "page_faults_whole"
PLAIN, FOREIGN, LOST = TableName(DATABASE, "plain"), TableName(DATABASE, "taken"), TableName(WHOLE, "only")
COLUMNS = (Column("a", "bigint"),)
DISK = "16m"
SECONDS = 90.0
"""Of a machine that other tests have too; by itself each step takes a few."""
CARDS = """
return [...document.querySelectorAll("#problems > li")].map((one) => ({
  text: one.innerText,
  since: one.querySelector("time")?.dateTime ?? null,
}));
"""
"""The problems as a person sees them, with the times that they have begun at."""


@dataclass
class Played:
    """A process with two targets at one metastore, and a browser that looks at its problems. `dr` is reached through a
    line of its own, as is the source; the files of `near` lie on a small disk that only the process sees."""

    root: Path
    server: Metastore
    lines: Mapping[str, Asked]
    target: Metastore
    chromium: Browser
    process: subprocess.Popen[bytes] = field(init=False)
    source: Source = field(init=False)

    def start(self) -> None:
        """Begin with a table in each of two databases, and wait until both targets show them."""
        self.source = Source(HiveClient(self.server.uri), self.root / "data")
        for name in (PLAIN, LOST):
            self.source.create_database(name.database)
            self.source.create_table(name, COLUMNS, external=True, rows=3)
        (self.root / "disk").mkdir()
        (self.root / "calque.toml").write_text(
            f"""
            [source]
            name = "hq"
            metastore = "{self.lines["source"].uri}"
            poll = "50ms"
            [serve]
            address = "127.0.0.1:0"
            [targets.dr]
            metastore = "{self.lines["dr"].uri}"
            warehouse = "file://{self.root}/dr"
            include = ["{DATABASE}.*", "{WHOLE}.*"]
            [targets.near]
            metastore = "{self.target.uri}"
            warehouse = "file://{self.root}/disk"
            include = ["{PLAIN}"]
            rename = {{ "{DATABASE}" = "{DATABASE}_near" }}
            """
        )
        command = [*with_disk(str(self.root / "disk"), DISK), sys.executable, "-m", "calque.cli", "run"]
        with (self.root / "run.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.root)
        control = ControlStore(self.root / "state" / "control")
        wait_until(lambda: any(one.serves for one in processes(control)), self)
        [process] = processes(control)
        self.chromium.show(DESKTOP, "light")
        self.chromium.driver.get(f"{process.serves}/#/problems")
        wait_until(lambda: (self.root / "dr" / f"{WHOLE}.db").exists(), self)
        self.gone(" fails", "meets an error")

    def cards(self) -> list[Mapping[str, str | None]]:
        found = self.chromium.run(CARDS)
        assert isinstance(found, list)
        return found

    def problem(self, *said: str, began: float) -> str:
        """The text of the problem that says all of that, once the page has it. It began at `began` or later, says so in
        UTC, and says what is to be done."""

        def matching() -> Mapping[str, str | None] | None:
            return next((card for card in self.cards() if all(one in str(card["text"]) for one in said)), None)

        wait_until(lambda: matching() is not None, self)
        card = matching()
        assert card is not None
        text, since = str(card["text"]), str(card["since"])
        assert began - 1 <= datetime.fromisoformat(since).timestamp() <= time.time()
        assert re.search(rf"since {since[11:19]} UTC \(\d", text), text
        assert "What to do: " in text
        return text

    def gone(self, *words: str) -> None:
        """Wait until no problem says any of that."""
        wait_until(lambda: not any(one in str(card["text"]) for card in self.cards() for one in words), self)

    def headline(self) -> str:
        return str(self.chromium.driver.title)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.tail()

    def tail(self) -> str:
        return (self.root / "run.log").read_text()[-6000:]


def wait_until(reached: Callable[[], object], played: Played) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        seen = [card["text"] for card in played.cards()] if played.chromium.driver.current_url[:4] == "http" else []
        assert time.monotonic() < deadline, f"{seen}\n{played.tail()}"
        time.sleep(0.1)


@pytest.fixture
def played(shared: Shared, tmp_path: Path) -> Iterator[Played]:
    """Over a source of its own, whose log is cut, and a target that other tests have too."""
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        starting = pool.submit(Metastore.start, MetastoreSettings(version="3.1.3"), tmp_path / "source")
        target = shared("target-3")["target-3"]
        server = stack.enter_context(starting.result(180))
        lines = {name: stack.enter_context(asked(uri)) for name, uri in (("source", server.uri), ("dr", target.uri))}
        made = Played(tmp_path, server, lines, target, stack.enter_context(browser()))
        made.start()
        yield made
        for line in lines.values():
            line.heal()
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait(60)


def test_six_faults_are_found_out_from_the_page_alone(played: Played) -> None:
    target_is_away(played)
    disk_is_full(played)
    name_is_taken(played)
    events_are_lost_while_capture_is_behind(played)
    played.end()


def target_is_away(played: Played) -> None:
    began = time.time()
    played.lines["dr"].refuse()
    text = played.problem("dr fails", "No metastore answers at", began=began)
    assert re.search(r"failing since .*, \d+ attempts", text)
    assert "Start the metastore, or correct its address." in text
    assert "calque check" in text
    assert "dr fails – Problems – calque" in played.headline()
    played.lines["dr"].heal()
    played.gone("dr fails", "dr meets an error")
    assert "dr fails" not in played.headline()


def disk_is_full(played: Played) -> None:
    began = time.time()
    with filled(Path(seen_by(played.process.pid, str(played.root / "disk" / "filler")))):
        played.source.insert(PLAIN)
        text = played.problem("near ", "No room to", began=began)
        assert "Make room where its files lie, or add space." in text
        assert "calque sweep" in text
    played.gone("No room to")


def name_is_taken(played: Played) -> None:
    there, began = HiveClient(played.target.uri), time.time()
    stored = storage("parquet", COLUMNS, f"file:{played.root}/theirs")
    there.create_table(Table(FOREIGN.table, FOREIGN.database, storage=stored, parameters={}, type="EXTERNAL_TABLE"))
    played.source.create_table(FOREIGN, COLUMNS, external=True, rows=1)
    text = played.problem(f"{FOREIGN} is in quarantine at dr", began=began)
    assert f"calque adopt --target dr --tables {FOREIGN}" in text
    assert re.search(r"event [\d,]+", text)
    there.drop_table(FOREIGN)
    played.source.drop_table(FOREIGN)
    played.gone(f"{FOREIGN} is in quarantine")


def events_are_lost_while_capture_is_behind(played: Played) -> None:
    """Reads of the log fail; meanwhile the source loses the events that nobody has read, a drop among them."""
    began, line = time.time(), played.lines["source"]
    journal = DeltaJournal(str(played.root / "state" / "journal"))
    line.losing["get_next_notification"] = 1_000_000
    played.source.drop_table(LOST)
    head = played.source.client.current()
    text = played.problem("capture of hq is behind", "The journal lacks 1 event of hq.", began=began)
    assert "See how long reads of the log take at the metastore" in text
    assert "calque check" in text
    captured = journal.last() or 0
    assert captured < head
    played.server.sql('DELETE FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" BETWEEN %s AND %s', (captured + 1, head))
    played.source.insert(PLAIN)
    began = time.time()
    line.losing.clear()
    held = played.problem(f"{LOST} is held at dr", began=began)
    assert f"calque release-drops --target dr --tables {LOST}" in held
    assert "See whether they are meant to go" in held
    gap = played.problem("the log of hq lost event", began=began)
    assert "The log was cleaned, or lost rows, before calque had read them." in gap
    assert "Have the log keep events for longer than calque may be down." in gap
    played.gone("capture of hq ")
