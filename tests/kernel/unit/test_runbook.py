"""The runbook has an entry for each alert, and its messages are those of calque."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
import yaml

from calque.serve.monitoring import ALERTS
from support.places import ROOT

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
BY_ALERT, BY_MESSAGE = RUNBOOK.split("## By message\n")
MESSAGES = re.findall(r"^\| `([^`]+)` \|", BY_MESSAGE, re.MULTILINE)
PARTS = ("**Means**: ", "**Look**: ", "**Do**: ")


def texts() -> Iterator[str]:
    """All texts of the package, with `…` for what is put into them."""
    for file in (ROOT / "lib" / "calque").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                pieces = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                yield re.sub(r"…(\W*…)*", "…", "".join(map(str, pieces)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


TEXTS = frozenset(texts())


def is_begun_by(message: str) -> bool:
    beginning = re.sub(r"…(\W*…)*", "…", message).removesuffix("…")
    return any(text.startswith(beginning) for text in TEXTS)


def rules() -> list[dict[str, dict[str, str]]]:
    [group] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def test_each_alert_has_an_entry_and_each_entry_an_alert() -> None:
    assert re.findall(r"^### (\w+)$", BY_ALERT, re.MULTILINE) == [rule["alert"] for rule in rules()]


@pytest.mark.parametrize(
    "entry", re.split(r"^### ", BY_ALERT, flags=re.MULTILINE)[1:], ids=lambda text: text.split()[0]
)
def test_an_entry_says_what_the_alert_means_where_to_look_and_what_to_do(entry: str) -> None:
    assert [part for part in PARTS if part not in entry] == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_names_its_entry(rule: dict[str, dict[str, str]]) -> None:
    assert rule["annotations"]["description"].endswith(f" See {rule['alert']} in docs/runbook.md.")


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_runbook_is_one_of_calque(message: str) -> None:
    assert is_begun_by(message)


def test_messages_that_calque_does_not_have_are_seen() -> None:
    assert is_begun_by("The lease on … is lost")
    assert not is_begun_by("The lease on … is stolen")
    assert len(MESSAGES) > 40
