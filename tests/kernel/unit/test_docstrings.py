"""Docstrings begin with a sentence that has a subject, or a verb that says what is done."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.places import ROOT

PACKAGE = ROOT / "lib" / "calque"
BEGINNINGS = {
    "a relative clause": r"What|Where|Which|Whose|Why|How|Who|Whoever|Whether|When|That",
    "a preposition": "Of|By|In|At|On|For|From|With|Without|Until|Between|Behind|Under|Over|After|Before|Beside|Through"
    "|Among|Towards?",
    "a pronoun": "Those|These|They|It|This|One of|The same|The others?|As|Such|Both|All that|Some|Any|None|Each|Every",
}
VAGUE = re.compile(r"\b(whoever|whatever|nobody|somebody|something|someone)\b")
FOLDERS = sorted({file.parent for file in PACKAGE.rglob("*.py")})


def documented(node: ast.AST, name: str = "") -> Iterator[tuple[str, str]]:
    """The module, and its classes and functions at any depth, with their docstrings."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        name = f"{name}.{node.name}" if not isinstance(node, ast.Module) else name
        if text := ast.get_docstring(node):
            yield name or "(module)", text
    for child in ast.iter_child_nodes(node):
        yield from documented(child, name)


def refusal(text: str) -> str:
    """Why the docstring is refused; empty where it is not."""
    first_sentence = re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0]
    for what, words in BEGINNINGS.items():
        if re.match(rf"({words})\b", text) and not first_sentence.endswith("?"):
            return f"begins with {what}"
    vague_word = VAGUE.search(text)
    return f"says {vague_word.group()}" if vague_word else ""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_docstrings_say_who_does_what(folder: Path) -> None:
    refused = [
        f"{file.name} {name} {why}"
        for file in sorted(folder.glob("*.py"))
        for name, text in documented(ast.parse(file.read_text(encoding="utf-8")))
        if (why := refusal(text))
    ]
    assert refused == []


@pytest.mark.parametrize(
    "text",
    ["What a table shows.", "Of one table.", "Those that wait.", "Each of them.", "Copy what somebody asked for."],
)
def test_a_riddle_is_refused(text: str) -> None:
    assert refusal(text)


@pytest.mark.parametrize("text", ["Copy the files of a table.", "The files of a table.", "Why does a table wait?"])
def test_a_sentence_is_not(text: str) -> None:
    assert not refusal(text)
