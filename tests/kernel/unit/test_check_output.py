"""What `calque check` prints of its findings, for people and as a document."""

from __future__ import annotations

import pytest

from calque.commands.check import print_findings
from calque.engine.check.findings import Findings, Severity


def printed(findings: Findings, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_findings(findings)
    return capsys.readouterr().out.splitlines()


def test_a_paragraph_that_several_targets_share_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings()
    for name in ("dr", "lake"):
        findings.add(f"target {name}", Severity.INFO, "No compare-and-swap", "Hive 3 has none", "Choose a long lease")
    findings.add("target dr", Severity.WARNING, "Objects stand in the way: a.b")
    assert printed(findings, capsys) == [
        "target dr, target lake:",
        "  info: No compare-and-swap. Hive 3 has none. Choose a long lease.",
        "target dr:",
        "  warning: Objects stand in the way: a.b.",
        "All is well.",
    ]


def test_what_is_as_it_should_be_is_left_to_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings()
    findings.add_expected("source", "The newest event is 7")
    assert printed(findings, capsys) == ["All is well."]
    assert [(one.severity, one.what, one.expected) for one in findings.entries] == [
        (Severity.INFO, "The newest event is 7", True)
    ]


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        ("their data lie outside the warehouse", "Their data lie outside the warehouse."),
        ("then, none", "Then, none."),
        ("calque makes it", "calque makes it."),
        ("repl.source.for is not set there", "repl.source.for is not set there."),
        ("poll = 3", "poll = 3."),
    ],
)
def test_each_sentence_begins_with_a_capital_unless_a_name_begins_it(
    why: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = Findings()
    findings.add("source", Severity.WARNING, "It is late", why)
    assert printed(findings, capsys)[1] == f"  warning: It is late. {shown}"
