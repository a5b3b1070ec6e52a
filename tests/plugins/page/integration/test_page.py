"""The page at `/` in a real browser, over the server that `run` has: names that are markup, keys, contrast, phones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium, which drives the browser, is not installed")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from calque.config.checks import Endpoint
from calque.errors import Refused
from calque.model.secrets import FileSecret
from calque.plugins.page.run.routes import ActionRequest, Console, LinkQuery, TableQuery, front_page
from calque.ports.records import Json
from calque.serve.guard import Tokens
from calque.serve.http import Access, Serving, serve
from calque.serve.metrics import Meters
from calque.serve.pages import Pages
from calque.serve.samples import ProcessSample
from support.services.browser import DESKTOP, PHONE, Browser, browser, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"{' and '.join(missing())} not installed")

HOSTILE = "sales.<script>alert(1)</script><img src=x onerror=alert(2)>"
REASON = 'it is "not ours"</p><script>document.title = "broken"</script>; take it over with `calque adopt`'
TOKEN = "of-all-pages-é"
COUNT = 100_000
DAY = "2026-01-01T00:00:00Z"
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


DATABASE = {"table": "<i>sales</i>", "kind": "database", "release": "<i>sales</i>.*"}


def target(name: str, **changes: object) -> dict[str, Any]:
    tables = {"live": COUNT, "unknown": 0, "reading": 4, "staging": 2, "waiting": 1, "quarantined": 1}
    row = {"table": HOSTILE, "at_target": None, "state": "quarantined", "shows": 700, "reason": REASON}
    return {
        "name": name,
        "source": "hq",
        "state": "running",
        "problem": None,
        "reachable": True,
        "position": 812,
        "epoch": 57,
        "lag_events": 2,
        "lag_seconds": 0.7,
        "tables": tables,
        "copying": {
            "files": 9,
            "bytes": 5_000_000,
            "files_done": 3,
            "bytes_done": 2_000_000,
            "ends_at": 2_000_000_000.0,
        },
        "reading": {"tables": 9, "tables_done": 5, "ends_at": None},
        "lagging": [{"table": HOSTILE, "shows": 700, "lag_events": 112, "lag_seconds": 90.0}],
        "quarantined": [
            {**row, "kind": "table", "since_event": 700, "what_to_do": "Take it over.", "why": ""},
            {**row, **DATABASE, "since_event": 701, "what_to_do": "Mend it.", "why": ""},
        ],
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


ANSWERS, SILENT = {"reachable": True}, {"reachable": False}


def remote(name: str, state: str, reason: str = "") -> dict[str, Any]:
    """A row of a link."""
    to = {"connected_to": name, "via": "thrift"}
    return {"name": name, **to, "state": state, "event_id": None if reason else 812, "reason": reason}


LINKS = [
    link(690, "before", why="it is older than what the ledger remembers of the table"),
    link(700, "shown", epoch=56, published_at="2026-01-01T00:00:00+00:00", changes={"add_partition": 2}, files=2),
    link(705, "passed_over", why="one hop goes from event 700 to event 710", was=HOSTILE),
    link(710, "shown", epoch=57, changes={"alter_table": 1}, bridge=True),
    link(720, "waiting", why=REASON),
]


@dataclass
class World:
    """What the page is told, and what it asked for."""

    targets: list[dict[str, Any]] = field(
        default_factory=lambda: [target("dr"), target("<b>mirror</b>", state="paused")]
    )
    asked: list[ActionRequest] = field(default_factory=list)
    lags_since: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: [f"sales.t{number:06}" for number in range(COUNT)])
    may_act: bool = False
    head: int = 814

    def console(self) -> Console:
        return Console(self.overview, self.lags, self.tables, self.table, self.links, self.act)

    def overview(self) -> Json:
        source = {"name": "hq", "captured_here": True, "state": "running", "problem": None, "reachable": True}
        gap = {
            "source": "hq",
            "from": 1,
            "to": 5,
            "state": "held",
            "cause": "purged",
            "found_at": "2026-01-01T00:00:00Z",
        }
        done = {"at": 1.0, "state": "done", "problem": None, "result": None}
        bridge = {"target": "dr", "epoch": 5, "event_id": 9, "at": "2026-01-01T00:00:00Z", "kind": "bridge"}
        return {
            "at": 1_700_000_000.0,
            "sources": [{**source, "head": self.head, "journal": 812}],
            "targets": self.targets,
            "channels": [{"name": "ops", "at": "source", "state": "running", "problem": REASON, "lag_events": 3}],
            "silent": [],
            "actions": [
                {"action": one.action, "target": one.target, "tables": list(one.tables), **done} for one in self.asked
            ],
            "may_act": self.may_act,
            "gaps": [gap],
            "exceptions": [{**bridge, "table": HOSTILE, "text": REASON}],
            "elsewhere": [],
            "rules": {},
            "links": {"states": {"live": COUNT, "set_aside": 1}, "aside": [remote(HOSTILE, "set_aside", REASON)]},
            "clusters": [
                {"name": "<b>east</b>", "metastore": "thrift://a:9083", "engine": None, "default": True, **ANSWERS},
                {"name": "west", "metastore": "thrift://b:9083", "engine": "sc://b", "default": False, **SILENT},
            ],
        }

    def lags(self, since: float) -> Json:
        self.lags_since.append(since)
        times = [float(at) for at in range(1_700_000_000, 1_700_000_060, 2) if at > since]
        columns = [times, [0.5] * len(times), [1] * len(times)]
        return {"now": 1_700_000_060.0, "targets": {one["name"]: columns for one in self.targets}}

    def tables(self, query: TableQuery) -> Json:
        found = [name for name in self.names if query.text in name]
        rows = found[query.offset : query.offset + query.limit]
        fields = {"at_target": None, "state": "live", "shows": 812, "reason": "", "since_event": None}
        return {"total": len(found), "offset": query.offset, "tables": [{"table": name, **fields} for name in rows]}

    def table(self, target: str, name: str) -> Json:
        if name == "sales.missing":
            raise Refused(f"{target} has no {name}", "", "Name another")
        about = {"table": name, "target": target, "state": "waiting", "shows": 710, "position": 812, "reason": REASON}
        return {**about, "what_to_do": "", "why": "", "looked_back_to": 600, "cut": 0, "links": LINKS}

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
            assert chromium.driver.title == "calque"
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
        summary = chromium.driver.find_element(
            By.CSS_SELECTOR, "section[aria-label='Target dr'] details:last-of-type summary"
        )
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
        for asked, (number, name) in enumerate(((0, HOSTILE), (1, DATABASE["release"])), 1):
            chromium.driver.find_elements(By.CSS_SELECTOR, "[data-action=release]")[number].click()
            chromium.driver.find_element(By.CSS_SELECTOR, "dialog .primary").click()
            chromium.wait(lambda asked=asked: len(world.asked) == asked + 1)  # type: ignore[misc]
            assert world.asked[asked] == ActionRequest("release", "dr", (name,))
        assert chromium.complaints() == []
        assert json.loads(chromium.run("return JSON.stringify(document.cookie)")) == ""
