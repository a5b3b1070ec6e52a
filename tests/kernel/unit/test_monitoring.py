"""The dashboard and the alert rules in the package fit the metrics that a process exports, and what reads them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from calque.cli import main
from calque.engine.exact_reads.progress import ReadTotals
from calque.engine.sides.copy_progress import Progress
from calque.engine.window.result import WindowResult
from calque.model.ledger import Epoch
from calque.model.names import Span
from calque.serve.metrics import Meters
from calque.serve.monitoring import ALERTS, DASHBOARD
from calque.serve.samples import CaptureSample, ProcessSample, SourceSample, TargetSample, VerifiedSample
from calque.serve.table_lag import TableLag
from support.judges.documents import read_document
from support.places import ROOT

PAGE = ROOT / "docs" / "operations.md"
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds to whatever it reads."""
RULE_KEYS = {"alert", "expr", "for", "labels", "annotations"}


def exported() -> Mapping[str, set[str]]:
    """Each metric of a process that has done everything once, with its labels."""
    target = TargetSample(
        name="dr",
        state="running",
        problem=None,
        reachable=True,
        position=10,
        epoch=3,
        lag_events=2,
        lag_seconds=1.5,
        tables={"live": 4},
        copying=Progress(0, 0),
        reading=ReadTotals(0, 0, 0, 0, 0, 0, 0),
        lagging=(TableLag("a.b", 1, 2, 3.0),),
        verified=VerifiedSample(at=1e9, event_id=9, differences=0, is_whole=True),
        free_bytes=8,
    )
    capture = CaptureSample(state="running", problem=None, reachable=True, head=12, last=12, pinned_bytes=7)
    meters = Meters(
        lambda: ProcessSample(sources=(SourceSample(name="hq", capture=capture),), targets=(target,), free_bytes=9)
    )
    window = WindowResult(Span(8, 10))
    window.epoch = Epoch(3, 10, 8, "", "window")
    meters.window("dr", window, 0.3, "dr-3-8")
    meters.retries.labels("dr").inc()
    metrics: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(meters.text()[0].decode()):
        for sample in family.samples:
            metrics.setdefault(sample.name, set()).update(sample.labels)
    return metrics


def panels(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    """All of both files, with what Grafana puts in place of its variables."""
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    texts = [target["expr"] for panel in panels(document) for target in panel["targets"]]
    queries = (variable["query"] for variable in document["templating"]["list"] if variable["type"] == "query")
    texts += [re.fullmatch(r"label_values\((.+), (\w+)\)", query["query"])[1] for query in queries]
    for text in texts:
        yield re.sub(r"\$(instance|target)\b", ".+", re.sub(r"\$__(rate_)?interval", "5m", text))
    for rule in rules():
        yield rule["expr"]


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    assert set(group) == {"name", "rules"}
    assert isinstance(group["rules"], list)
    return group["rules"]


def selectors(expression: str) -> list[tuple[str, set[str]]]:
    """The metrics that the expression reads, each with the labels that it chooses by. Raises `ValueError` for what is
    no PromQL."""
    found: list[tuple[str, set[str]]] = []

    def visit(node: object) -> bool:
        if isinstance(node, promql_parser.VectorSelector):
            found.append((str(node.name), {matcher.name for matcher in node.matchers.matchers}))
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def test_the_dashboard_has_nothing_that_grafana_s_schema_does_not_know() -> None:
    register_default_plugins()
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert list(lost(document, understood(document))) == []
    document["panels"][1]["options"]["colourMode"] = "none"
    assert list(lost(document, understood(document))) == [".panels.1.options.colourMode"]


def understood(document: dict[str, Any]) -> Any:
    """What Grafana's own types make of the document; they add defaults, and pass over what they do not know."""
    return json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder))


def lost(written: Any, read: Any, place: str = "") -> Iterator[str]:
    """Places of what was written and not read."""
    match written, read:
        case dict(), dict():
            for key, value in written.items():
                yield from lost(value, read[key], f"{place}.{key}") if key in read else [f"{place}.{key}"]
        case list(), list() if len(written) == len(read):
            for number, value in enumerate(written):
                yield from lost(value, read[number], f"{place}.{number}")
        case _ if written != read:
            yield place


def test_panels_have_their_own_numbers_and_places() -> None:
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    numbers = [panel["id"] for panel in document["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in document["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert all(panel["description"] and panel["title"] for panel in panels(document))


def test_every_expression_reads_metrics_and_labels_that_there_are() -> None:
    metrics = exported()
    read = {selector for text in expressions() for selector in [(n, frozenset(ls)) for n, ls in selectors(text)]}
    assert len(read) > 20
    unknown = {(name, tuple(labels - metrics.get(name, set()) - SCRAPED)) for name, labels in read}
    assert {(name, labels) for name, labels in unknown if name not in metrics or labels} == set()


def test_what_is_no_promql_is_seen() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        selectors("sum by (rate(calque_events_total[5m])")


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: Mapping[str, Any]) -> None:
    assert RULE_KEYS >= set(rule) >= RULE_KEYS - {"for"}
    assert re.fullmatch(r"Calque[A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert promql_parser.parse_duration(rule.get("for", "1m")).total_seconds() > 0
    named = {name for text in rule["annotations"].values() for name in re.findall(r"\$labels\.(\w+)", text)}
    metrics = exported()
    labels = set().union(*(metrics[name] for name, _ in selectors(rule["expr"])))
    assert named <= labels | SCRAPED
    assert f"`{rule['alert']}`" in PAGE.read_text(encoding="utf-8")


def test_every_metric_is_explained() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = set(re.findall(r"calque_\w+", page))
    for begin, words, end in re.findall(r"(calque_)\{([\w,]+)\}(\w+)", page):
        names |= {f"{begin}{word}{end}" for word in words.split(",")}
    metrics = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in exported() if name.startswith("calque_")}
    metrics -= {name.removesuffix("_total") for name in metrics if name.endswith("_total")}
    assert {name for name in metrics if name not in names} == set()


def test_the_command_prints_the_files_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    for name, file in (("grafana", DASHBOARD), ("alerts", ALERTS)):
        assert main(["monitoring", name]) == 0
        assert capsys.readouterr().out == file.read_text(encoding="utf-8")


def test_the_command_s_documents_have_all_of_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitoring", "grafana", "--json"]) == 0
    dashboard = read_document("monitoring grafana", capsys.readouterr().out)
    assert dashboard == json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert main(["monitoring", "alerts", "--json"]) == 0
    alerts = read_document("monitoring alerts", capsys.readouterr().out)
    assert alerts == {"file": ALERTS.name, "content": ALERTS.read_text(encoding="utf-8")}


def test_the_module_says_where_the_files_are() -> None:
    command = [sys.executable, "-m", "calque.serve.monitoring"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert [Path(line) for line in ended.stdout.splitlines()] == [DASHBOARD, ALERTS]
