"""The page at `/` in a real browser, over the server that `run` has: names that are markup, keys, contrast, phones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium, which drives the browser, is not installed")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from calque.config.checks import Endpoint
from calque.errors import Refused
from calque.model.part_states import Failing
from calque.model.secrets import FileSecret
from calque.plugins.page.run.documents import (
    channel_document,
    documents_of_problems,
    failing_document,
    gap_document,
    source_document,
)
from calque.plugins.page.run.routes import ActionRequest, Console, LinkQuery, front_page
from calque.plugins.page.run.table_list import TableOrder, TableQuery
from calque.ports.records import Json
from calque.serve.guard import Tokens
from calque.serve.http import Access, Serving, serve
from calque.serve.known_facts import AsideObject, KnownFacts, LostEvents, PausedPattern
from calque.serve.metrics import Meters
from calque.serve.pages import Pages
from calque.serve.problems import Problem, problem_count, problems
from calque.serve.samples import CaptureSample, ChannelSample, ProcessSample, SourceSample, TargetSample
from support.services.browser import DESKTOP, PHONE, Browser, browser, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"{' and '.join(missing())} not installed")

HOSTILE = "sales.<script>alert(1)</script><img src=x onerror=alert(2)>"
REASON = 'it is "not ours"</p><script>document.title = "broken"</script>; take it over with `calque adopt`'
TOKEN = "of-all-pages-é"
COUNT = 100_000
DR = "section[aria-label='Target dr']"
UNEXPLAINED = """
const buttons = [...document.querySelectorAll("button.term")];
return buttons.filter((one) => !one.title || one.title === "undefined").map((one) => one.textContent);
"""
"""Words that look as if they were explained, and are not."""
IS_OPEN = "return arguments[0].parentElement.open"
FADED = """
const visible = (node) => node.checkVisibility({ checkVisibilityCSS: true });
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgb = (color, under) => {
  canvas.fillStyle = `rgb(${under})`; canvas.fillRect(0, 0, 1, 1);
  canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const behind = (node) => {
  const above = [];
  for (let one = node; one; one = one.parentElement) above.push(getComputedStyle(one).backgroundColor);
  return above.reverse().reduce((under, color) => rgb(color, under), [255, 255, 255]);
};
const light = (color) => {
  const [r, g, b] = color.map((part) => part / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const faded = new Set();
while (texts.nextNode()) {
  const node = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !visible(node) || node.closest("button:disabled, noscript, .skip")) continue;
  const under = behind(node);
  const [low, high] = [light(rgb(getComputedStyle(node).color, under)), light(under)]
    .sort((a, b) => a - b);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5) faded.add(`${texts.currentNode.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return [...faded];
"""
"""Texts whose contrast is below what WCAG 2 asks of level AA."""


NOW = 1_700_000_000.0
DATABASE = "<i>sales</i>"
ASIDE = AsideObject(
    target="dr", name=HOSTILE, kind="table", reason=REASON, since_event=700, since=NOW - 90, pattern=HOSTILE
)
AWAY = "No metastore answers at thrift://<b>mirror</b>:9083. Connection refused. Start it."
FAILING = Failing(NOW - 240, 12, NOW + 8)


def target(name: str, **changes: object) -> dict[str, Any]:
    tables = {"live": COUNT, "unknown": 0, "reading": 4, "staging": 2, "waiting": 1, "quarantined": 1}
    return {
        "name": name,
        "source": "hq",
        "state": "running",
        "problem": None,
        "failing": None,
        "reachable": True,
        "position": 812,
        "epoch": 57,
        "published_at": NOW - 4,
        "as_of": NOW - 1,
        "lag_events": 2,
        "lag_seconds": 0.7,
        "events_per_second": 120.5,
        "catches_up_at": NOW + 180,
        "tables": tables,
        "paused_tables": 0,
        "copying": {
            "files": 9,
            "bytes": 5_000_000,
            "files_done": 3,
            "bytes_done": 2_000_000,
            "ends_at": 2_000_000_000.0,
        },
        "reading": {"tables": 9, "tables_done": 5, "ends_at": None},
        "lagging": [{"table": HOSTILE, "shows": 700, "lag_events": 112, "lag_seconds": 90.0}],
        "verified": {"at": NOW - 2100, "event_id": 800, "differences": 2, "is_whole": True},
        "free_bytes": 5_000_000,
        **changes,
    }


def link(event_id: int, fate: str, **changes: object) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "kind": "add_partitions",
        "event_type": "ADD_PARTITION",
        "event_time": 1_700_000_000,
        "fate": fate,
        "why": "",
        "epoch": None,
        "published_at": "",
        "changes": None,
        "files": 0,
        "bytes": 0,
        "bridge": False,
        "partitions": 2,
        "was": "",
        **changes,
    }


ANSWERS: Mapping[str, Any] = {"reachable": True}
SILENT: Mapping[str, Any] = {"reachable": False}


def remote(name: str, state: str, reason: str = "") -> dict[str, Any]:
    """A row of a link."""
    to = {"connected_to": name, "via": "thrift"}
    return {"name": name, **to, "state": state, "event_id": None if reason else 812, "reason": reason}


SOURCE = SourceSample(
    name="hq",
    capture=CaptureSample(state="running", problem=None, reachable=True, head=814, last=812, newest_at=NOW - 3),
)
CHANNEL = ChannelSample(name="ops", state="running", problem=REASON, lag_events=3)
GAP = LostEvents(source="hq", target="", first=1, last=5, state="held", cause="purged", found_at=NOW - 300)
LINKS = [
    link(690, "before", why="it is older than what the ledger remembers of the table"),
    link(700, "shown", epoch=56, published_at="2026-01-01T00:00:00+00:00", changes={"add_partition": 2}, files=2),
    link(705, "passed_over", why="one hop goes from event 700 to event 710", was=HOSTILE),
    link(710, "shown", epoch=57, changes={"alter_table": 1}, bridge=True),
    link(720, "waiting", why=REASON),
]
CHAIN: Mapping[str, Any] = {"looked_back_to": 600, "cut": 0, "links": LINKS}


@dataclass
class World:
    """What the page is told, and what it asked for."""

    targets: list[dict[str, Any]] = field(
        default_factory=lambda: [
            target("dr"),
            target("<b>mirror</b>", state="failing", problem=AWAY, failing=failing_document(FAILING)),
            target("new", **dict.fromkeys(("position", "epoch", "published_at", "as_of", "verified", "free_bytes"))),
        ]
    )
    asked_tables: list[TableQuery] = field(default_factory=list)
    asked: list[ActionRequest] = field(default_factory=list)
    lags_since: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: [f"sales.t{number:06}" for number in range(COUNT)])
    may_act: bool = False
    head: int = 814

    def console(self) -> Console:
        return Console(
            overview=self.overview,
            lags=self.lags,
            tables=self.tables,
            every_table=self.every_table,
            table=self.table,
            links=self.links,
            about=self.about,
            act=self.act,
        )

    def problems(self) -> tuple[Problem, ...]:
        """What a process lists of such a state."""
        mirror = TargetSample(name="<b>mirror</b>", state="failing", problem=AWAY, reachable=False, failing=FAILING)
        database = replace(ASIDE, name=DATABASE, kind="database", pattern=f"{DATABASE}.*", since=NOW - 80)
        facts = KnownFacts(
            aside=[ASIDE, database],
            aside_counts={"dr": 5},
            patterns=[PausedPattern(target="dr", pattern="hr.*", since=NOW - 720, tables=3)],
            gaps=[GAP],
            unserved=["lake"],
            links_aside=[(HOSTILE, REASON)],
            links_aside_count=1,
        )
        return problems(ProcessSample(sources=(), targets=(mirror,)), facts, NOW)

    def overview(self) -> Json:
        found = self.problems()
        done: dict[str, Any] = {"at": 1.0, "state": "done", "problem": None, "result": None}
        bridge: dict[str, Any] = {"target": "dr", "epoch": 5, "event_id": 9, "at": NOW - 60, "kind": "bridge"}
        epoch: dict[str, Any] = {"target": "dr", "kind": "window", "tables": 3, "hops": 4, "files": 5, "bytes": 6_000}
        return {
            "at": NOW,
            "began": 1.0,
            "problems": documents_of_problems(found, 100),
            "problem_count": problem_count(found),
            "headline": found[0].what,
            "sources": [{**source_document(SOURCE), "head": self.head}],
            "targets": self.targets,
            "channels": [channel_document(CHANNEL, "source")],
            "silent": [],
            "state_free_bytes": None,
            "actions": [{**done, **asdict(one)} for one in self.asked],
            "may_act": self.may_act,
            "gaps": [gap_document(GAP)],
            "exceptions": [{**bridge, "table": HOSTILE, "text": REASON}],
            "epochs": [{**epoch, "epoch": number, "event_id": 800 + number, "at": NOW - number} for number in range(9)],
            "elsewhere": [],
            "unserved": ["lake"],
            "rules": {"dr": ["pause hr.*"]},
            "links": {"states": {"live": COUNT, "set_aside": 1}},
            "clusters": [
                {"name": "<b>east</b>", "metastore": "thrift://a:9083", "engine": None, "default": True, **ANSWERS},
                {"name": "west", "metastore": "thrift://b:9083", "engine": "sc://b", "default": False, **SILENT},
            ],
        }

    def about(self) -> Json:
        versions: Json = {"version": "0.1.0", "python": "3.11.7", "pyspark": "4.2.0", "deltalake": "1.6.0"}
        place: dict[str, Json] = {
            "host": "replicator.hq",
            "pid": 4_711,
            "began": 1.0,
            "configuration": "calque.toml",
            "state": "state",
        }
        dr = {"name": "dr", "source": "hq", "metastore": "thrift://dr:9083", "warehouse": "file:/data/dr"}
        return {
            "versions": versions,
            **place,
            "configuration": "calque.toml",
            "state": "state",
            "reading": "token",
            "sources": [{"name": "hq", "metastore": "thrift://hq:9083"}],
            "targets": [dr],
            "docs": {"url": None, "folder": None},
        }

    def lags(self, since: float) -> Json:
        self.lags_since.append(since)
        times = [float(at) for at in range(1_700_000_000, 1_700_000_060, 2) if at > since]
        columns: Json = [times, [0.5] * len(times), [1] * len(times)]
        return {"now": 1_700_000_060.0, "targets": {one["name"]: columns for one in self.targets}}

    def every_table(self, query: TableQuery) -> Iterator[Mapping[str, Any]]:
        self.asked_tables.append(query)
        return (self.row(name) for name in self.names if query.text in name)

    def row(self, name: str) -> dict[str, Any]:
        lags = {"lag_events": 0, "lag_seconds": 0.0, "files": 3, "bytes": 4_500_000}
        fields = {"at_target": None, "state": "live", "shows": 812, "reason": "", "since_event": None}
        return {"table": name, **fields, **lags}

    def tables(self, query: TableQuery) -> Json:
        self.asked_tables.append(query)
        found = [name for name in self.names if query.text in name]
        rows = found[query.offset : query.offset + query.limit]
        return {"total": len(found), "offset": query.offset, "has_sizes": True, "tables": list(map(self.row, rows))}

    def table(self, target: str, name: str) -> Json:
        if name == "sales.missing":
            raise Refused(f"{target} has no {name}", "", "Name another")
        about: dict[str, Any] = {
            "table": name,
            "target": target,
            "state": "waiting",
            "shows": 710,
            "position": 812,
            "reason": REASON,
        }
        return {**about, "what_to_do": "", "command": "", "is_held": False, **CHAIN}

    def links(self, query: LinkQuery) -> Json:
        found = [remote(HOSTILE, "set_aside", REASON)] if query.state == "set_aside" else self.names
        rows = [remote(one, "live") if isinstance(one, str) else one for one in found if query.text in str(one)]
        return {
            "total": len(rows),
            "offset": query.offset,
            "links": rows[query.offset : query.offset + query.limit],
        }

    def act(self, request: ActionRequest) -> Json:
        if request.target != "dr":
            raise Refused(f"There is no {request.target}", "", "Name another")
        self.asked.append(request)
        return {}


@contextmanager
def served(world: World, tokens: Tokens) -> Iterator[Serving]:
    def look() -> ProcessSample:
        return ProcessSample(sources=(), targets=())

    pages = Pages(look, Meters(look).text, dict, front_page(world.console(), tokens.every is not None))
    serving = serve(Endpoint("127.0.0.1", 0), pages, Access(tokens, None))
    try:
        yield serving
    finally:
        serving.end()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def world(chromium: Browser) -> Iterator[World]:
    yield World()
    chromium.driver.get("about:blank")
    chromium.complaints()


VIEWS: Mapping[str, str] = {
    "": "Lag over time",
    "tables?target=dr": "1 to 50 of 100,000 tables",
    "links": "1 to 50 of 100,000 links",
    "links?state=set_aside": "1 to 1 of 1 link",
    "problems": "What to do:",
    "about": "replicator.hq",
    f"table/dr/{HOSTILE.replace('/', '%2F')}": "one hop goes from event 700 to event 710",
}


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark"), (PHONE, "light"), (DESKTOP, "dark")])
def test_every_view_is_readable_on_each_screen_and_no_name_is_taken_for_markup(
    chromium: Browser, world: World, size: tuple[int, int], scheme: str
) -> None:
    with served(world, Tokens()) as serving:
        chromium.show(size, scheme)
        for view, text in VIEWS.items():
            chromium.driver.get(f"{serving.address}/#/{view}")
            chromium.wait_for_text(text)
            assert chromium.run(FADED) == [], view
            assert chromium.run("return document.documentElement.scrollWidth - innerWidth") <= 0, view
            assert chromium.run("return document.querySelectorAll('main script, main img, main b').length") == 0, view
            assert chromium.driver.title.startswith("(10) <b>mirror</b> fails – ")
            assert chromium.run(UNEXPLAINED) == [], view
            if view == "":
                chromium.wait(lambda: chromium.run("return document.querySelector('#lags canvas') !== null"))
                # An answer without news is nothing to trip over.
                chromium.wait(lambda: world.lags_since.count(1_700_000_058.0) > 1)
                assert "<b>mirror</b>" in chromium.text()
                assert "does not answer" in chromium.text()
            assert chromium.hosts() == {serving.address.split("/")[2]}, view
        assert chromium.complaints() == []
        chromium.run("document.querySelector('h1').style.color = arguments[0]", "#888" if scheme == "light" else "#555")
        assert len(chromium.run(FADED)) == 1


def test_the_page_follows_by_itself_and_leaves_what_a_person_does_alone(chromium: Browser, world: World) -> None:
    with served(world, Tokens()) as serving:
        chromium.show(DESKTOP, "light")
        chromium.driver.get(f"{serving.address}/#/")
        chromium.wait_for_text("Lag over time")
        summary = chromium.driver.find_element(By.CSS_SELECTOR, f"{DR} details:last-of-type summary")
        summary.click()
        world.head, world.targets = 9_999, [target("dr", position=9_998), *world.targets[1:]]
        chromium.wait_for_text("9,998")
        assert chromium.focused() == summary
        assert chromium.run(IS_OPEN, summary) is True
    chromium.wait_for_text("calque does not answer")


def test_tables_are_searched_at_the_server_as_one_types(chromium: Browser, world: World) -> None:
    with served(world, Tokens()) as serving:
        chromium.show(PHONE, "light")
        chromium.driver.get(f"{serving.address}/#/tables?target=dr")
        chromium.wait_for_text("1 to 50 of 100,000 tables")
        chromium.driver.find_element(By.NAME, "q").send_keys("t0999")
        chromium.wait_for_text("1 to 50 of 100 tables")
        next_page = chromium.driver.find_element(By.XPATH, "//button[text()='Next']")
        next_page.click()
        chromium.wait_for_text("51 to 100 of 100 tables")
        assert chromium.driver.find_element(By.NAME, "q").get_attribute("value") == "t0999"
        chromium.driver.find_element(By.LINK_TEXT, "sales.t099950").send_keys(Keys.ENTER)
        chromium.wait_for_text("Its chain, newest first")
        chromium.driver.get(f"{serving.address}/#/links?state=live")
        chromium.wait_for_text("1 to 50 of 100,000 links")
        chromium.driver.find_element(By.NAME, "q").send_keys("t0999")
        chromium.wait_for_text("1 to 50 of 100 links")
        chromium.driver.find_element(By.XPATH, "//button[text()='Next']").click()
        chromium.wait_for_text("51 to 100 of 100 links")
        chromium.driver.get(f"{serving.address}/#/table/dr/sales.missing")
        chromium.wait_for_text("dr has no sales.missing")


def test_actions_need_a_token_and_a_confirmation_and_go_by_the_keyboard(
    chromium: Browser, world: World, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    world.may_act = True
    with served(world, Tokens(FileSecret(str(secret)))) as serving:
        chromium.show(DESKTOP, "dark")
        chromium.driver.get(f"{serving.address}/#/")
        chromium.wait_for_text("This page needs a token")
        assert chromium.run(FADED) == []
        chromium.driver.find_element(By.ID, "token").send_keys("wrong", Keys.ENTER)
        chromium.wait_for_text("This token does not open the page.")
        chromium.driver.find_element(By.ID, "token").send_keys(TOKEN, Keys.ENTER)
        chromium.wait_for_text("Lag over time")
        chromium.complaints()  # that the first answers were 401
        for _ in range(60):
            if chromium.focused().get_attribute("data-action") == "pause":
                break
            if chromium.focused().text == "Actions" and not chromium.run(
                "return arguments[0].parentElement.open", chromium.focused()
            ):
                chromium.focused().send_keys(Keys.ENTER)
            chromium.focused().send_keys(Keys.TAB)
        chromium.focused().send_keys(Keys.ENTER)
        chromium.wait_for_text("Pause dr?")
        assert chromium.focused().text == "Cancel"
        assert chromium.run(FADED) == []
        chromium.focused().send_keys(Keys.ESCAPE)
        chromium.wait(lambda: "Pause dr?" not in chromium.text())
        assert world.asked == []
        chromium.focused().send_keys(Keys.ENTER)
        chromium.wait_for_text("Pause dr?")
        chromium.driver.find_element(By.CSS_SELECTOR, "dialog .primary").send_keys(Keys.ENTER)
        chromium.wait_for_text("Asked for here")
        assert world.asked == [ActionRequest("pause", "dr")]
        chromium.driver.get(f"{serving.address}/#/problems")
        chromium.wait_for_text("What to do:")
        for asked, (number, name) in enumerate(((0, HOSTILE), (1, f"{DATABASE}.*")), 1):
            chromium.driver.find_elements(By.CSS_SELECTOR, "[data-action=release]")[number].click()
            chromium.driver.find_element(By.CSS_SELECTOR, "dialog .primary").click()
            chromium.wait(lambda asked=asked: len(world.asked) == asked + 1)  # type: ignore[misc]
            assert world.asked[asked] == ActionRequest("release", "dr", (name,))
        assert chromium.complaints() == []
        assert json.loads(chromium.run("return JSON.stringify(document.cookie)")) == ""


@pytest.mark.parametrize("view", ["", "tables?target=dr", "problems", "about", "table/dr/sales.x"])
def test_a_tab_says_how_many_problems_there_are_the_worst_of_them_and_its_view(
    chromium: Browser, world: World, view: str
) -> None:
    names = {"": "Flow", "table/dr/sales.x": "sales.x"}
    name = names.get(view, view.partition("?")[0].capitalize())
    with served(world, Tokens()) as serving:
        chromium.driver.get(f"{serving.address}/#/{view}")
        chromium.wait(lambda: chromium.driver.title == f"(10) <b>mirror</b> fails – {name} – calque")
    chromium.wait(lambda: chromium.driver.title == f"Not up to date – {name} – calque")


def test_times_are_utc_with_their_ages_wherever_the_browser_is(chromium: Browser, world: World) -> None:
    with served(world, Tokens()) as serving:
        chromium.show(DESKTOP, "light")
        chromium.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
        try:
            chromium.driver.get(f"{serving.address}/#/")
            chromium.wait_for_text("failing since 22:09:20 UTC (4 min), 12 attempts, next in 8.0 s")
            text = chromium.text()
            chromium.wait(lambda: chromium.run("return document.querySelector('#lags canvas') !== null"))
            legend = chromium.run("return document.querySelector('#lags .u-legend').innerText")
        finally:
            chromium.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    for said in (
        "Updated 22:13:20 UTC",
        "22:13:17 UTC (3.0 s)",
        "caught up about 22:16:20 UTC (in 3 min)",
        "2 differences at event 800, 21:38:20 UTC (35 min)",
        "57, 22:13:16 UTC (4.0 s)",
    ):
        assert said in text
    assert "22:14:18" in legend
    assert re.findall(r"[0-9] ?[AP]M|/20[0-9]{2}", text + legend) == []
    stamps = chromium.run("return [...document.querySelectorAll('time')].map((one) => one.dateTime)")
    assert [stamp for stamp in stamps if not re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z", stamp)] == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_word_is_explained_where_it_stands_by_the_keyboard_and_by_a_tap(
    chromium: Browser, world: World, size: tuple[int, int]
) -> None:
    said = "The last event that every live table of the target shows."
    with served(world, Tokens()) as serving:
        chromium.show(size, "light")
        chromium.driver.get(f"{serving.address}/#/")
        chromium.wait_for_text("Lag over time")
        word = chromium.driver.find_element(By.CSS_SELECTOR, f"{DR} [data-term=position]")
        chromium.run("arguments[0].focus()", word)
        word.send_keys(Keys.ENTER)
        chromium.wait_for_text(said)
        assert chromium.run(FADED) == []
        assert chromium.run("return document.documentElement.scrollWidth - innerWidth") <= 0
        chromium.focused().send_keys(Keys.ESCAPE)
        chromium.wait(lambda: said not in chromium.text())
        assert chromium.focused() == word
        word.click()
        chromium.wait_for_text(said)
        drawn = chromium.run("return document.getElementById('live').textContent")
        chromium.wait(lambda: len(world.lags_since) > 2)
        assert drawn
        assert said in chromium.text()
        chromium.driver.find_element(By.TAG_NAME, "h1").click()
        chromium.wait(lambda: said not in chromium.text())
        assert chromium.complaints() == []


def test_the_plot_says_as_text_what_it_draws(chromium: Browser, world: World) -> None:
    with served(world, Tokens()) as serving:
        chromium.show(DESKTOP, "light")
        chromium.driver.get(f"{serving.address}/#/")
        chromium.wait(lambda: chromium.run("return document.querySelector('#lags canvas') !== null"))
        label = chromium.run("return document.getElementById('lags').getAttribute('aria-label')")
        assert label.startswith("Lag of each target over 30 minutes: dr 0.5 s, at most 0.5 s;")
        assert "The lag as text" in chromium.text()
        chromium.driver.find_element(By.XPATH, "//summary[text()='The lag as text']").click()
        rows = chromium.run(
            "const rows = [...document.querySelectorAll('#lags + details tbody tr')];"
            "return rows.map((row) => row.innerText.split(/\\s+/))"
        )
        assert [row[0] for row in rows] == ["dr", "<b>mirror</b>", "new"]
        assert rows[0][1:] == ["0.5", "s"] * 3


def test_tables_are_sorted_by_a_heading_or_a_choice_and_exported_as_they_are_searched(
    chromium: Browser, world: World, tmp_path: Path
) -> None:
    world.names = world.names[:120]
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    downloads = {"behavior": "allow", "downloadPath": str(tmp_path)}
    chromium.driver.execute_cdp_cmd("Browser.setDownloadBehavior", downloads)
    with served(world, Tokens(FileSecret(str(secret)))) as serving:
        chromium.show(DESKTOP, "light")
        chromium.driver.get(f"{serving.address}/#/tables?target=dr&q=t0000")
        chromium.wait_for_text("This page needs a token")
        chromium.driver.find_element(By.ID, "token").send_keys(TOKEN, Keys.ENTER)
        chromium.wait_for_text("1 to 50 of 100 tables")
        for turned in (False, True):
            chromium.driver.find_element(By.XPATH, "//th/button[starts-with(., 'lag')]").click()
            chromium.wait(lambda turned=turned: asked_order(world) == (TableOrder.LAG, turned))  # type: ignore[misc]
            sign = "-" if turned else ""
            chromium.wait(lambda sign=sign: f"order={sign}lag" in chromium.driver.current_url)  # type: ignore[misc]
            chromium.wait(lambda: chromium.run("return document.querySelector('th[aria-sort]') !== null"))
        Select(chromium.driver.find_element(By.NAME, "order")).select_by_value("size")
        chromium.wait(lambda: asked_order(world) == (TableOrder.SIZE, False))
        chromium.wait(
            lambda: chromium.run('return document.querySelector(\'[data-save="tables.csv"][href*="=size"]\')')
        )
        for form in ("csv", "json"):
            chromium.driver.find_element(By.LINK_TEXT, form.upper()).click()
            saved = tmp_path / f"calque-dr-tables.{form}"
            chromium.wait(saved.is_file)
            assert saved.read_text().count("sales.t0000") == 100
        assert world.asked_tables[-1].text == "t0000"
        chromium.complaints()  # that the first answers were 401


def asked_order(world: World) -> tuple[TableOrder, bool]:
    newest = world.asked_tables[-1]
    return newest.order, newest.is_turned


def test_where_reading_is_open_everybody_reads_and_an_action_asks_for_the_token(
    chromium: Browser, world: World, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    world.may_act = True
    with served(world, Tokens(FileSecret(str(secret)), reading_is_open=True)) as serving:
        chromium.show(PHONE, "light")
        chromium.driver.get(f"{serving.address}/#/problems")
        chromium.wait_for_text("10 problems, the most harmful first.")
        chromium.driver.find_element(By.CSS_SELECTOR, "[data-action=resume]").click()
        for token, said in (("wrong", "This token does not open the page."), (TOKEN, "")):
            chromium.driver.find_element(By.ID, "token").send_keys(token, Keys.ENTER)
            if said:
                chromium.wait_for_text(said)
                assert world.asked == []
                chromium.driver.find_element(By.ID, "token").clear()
        chromium.wait(lambda: world.asked == [ActionRequest("resume", "dr", ("hr.*",))])
        chromium.wait(lambda: "Resume hr.*" not in chromium.text())
        chromium.complaints()  # that one answer was 401
        release = chromium.driver.find_element(By.CSS_SELECTOR, "[data-action=release]")
        chromium.run("arguments[0].scrollIntoView({ block: 'center' })", release)
        release.click()
        assert chromium.driver.find_elements(By.ID, "token") == []
        chromium.driver.find_element(By.CSS_SELECTOR, "dialog .primary").send_keys(Keys.ENTER)
        chromium.wait(lambda: len(world.asked) == 2)
        assert chromium.complaints() == []


def test_every_view_says_which_process_it_is_and_leads_to_metrics_status_and_the_runbook(
    chromium: Browser, world: World
) -> None:
    with served(world, Tokens()) as serving:
        chromium.show(DESKTOP, "light")
        chromium.driver.get(f"{serving.address}/#/problems")
        chromium.wait_for_text("calque 0.1.0, process 4711 on replicator.hq.")
        foot = chromium.driver.find_element(By.ID, "foot")
        links = [one.get_attribute("href") for one in foot.find_elements(By.TAG_NAME, "a")]
        assert links == [f"{serving.address}/{place}" for place in ("#/about", "metrics", "status")]
        assert "docs/operations.md#when-something-fails" in foot.text
        foot.find_element(By.LINK_TEXT, "About").click()
        chromium.wait_for_text("About this process")
        for said in ("thrift://hq:9083", "thrift://dr:9083", "file:/data/dr", "calque.toml", "3.11.7", "1.6.0"):
            assert said in chromium.text()
