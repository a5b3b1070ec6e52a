"""Whatever is written to `calque sql`: it is understood, or answered with a place in it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from calque.app import APP
from calque.errors import Refused, StatementSyntaxError
from calque.statements.parse import ParsedStatement
from calque.statements.split import is_complete

LANGUAGE = APP.language()
parse, completions = LANGUAGE.parse, LANGUAGE.completions
WORDS = sorted({word for form in LANGUAGE.forms for word in re.findall(r"\w+|'[^']*'|\S", form.example)})
"""Of which statements are made."""
BETWEEN = st.sampled_from([" ", "\n", "\t", " -- x;'\n", "/* ; ' */", " /**/ "])
MARKS = st.sampled_from(["'", '"', "`", "--", "/*", "*/", ";", "\\", "?", "#", "\x1b", "\r\n", "\u2028", "é", "\0"])
EXAMPLES = [form.example for form in LANGUAGE.forms]
PLAIN = [text for text in EXAMPLES if not re.search(r"^EXPLAIN|^HELP|WHERE", text)]
"""Those that do not end in another language, which is kept as it is written."""
TEXTS = st.lists(st.sampled_from(WORDS) | BETWEEN | MARKS | st.text(max_size=3), max_size=12).map("".join)


def refusal(text: str) -> Refused | None:
    """None of a text that is understood."""
    try:
        parse(text)
    except Refused as refused:
        return refused
    return None


@given(TEXTS | st.text())
@example("`")
@example("USE \u2028 x y")
def test_every_text_is_understood_or_answered_with_a_place_in_it(text: str) -> None:
    error = refusal(text)
    if not isinstance(error, StatementSyntaxError):
        assert error is None or error.what == "A ? has no value" or error.what.endswith("has two values")
        return
    match = re.match(r"Line (\d+), column (\d+): ", str(error))
    assert match is not None
    line = text.split("\n")[int(match[1]) - 1]
    assert 1 <= int(match[2]) <= len(line) + 1
    shown, mark = error.excerpt.split("\n")
    assert mark.strip() == "^"
    assert len(mark) <= len(shown) + 1


@given(TEXTS)
def test_every_beginning_of_a_text_can_be_completed(text: str) -> None:
    assert all(words.isprintable() for words in completions(text, ["dr"]))


@given(st.lists(st.tuples(BETWEEN, st.sampled_from(EXAMPLES), BETWEEN), min_size=1))
def test_what_stands_between_statements_changes_none_of_them(written: list[tuple[str, str, str]]) -> None:
    text = ";".join("".join(parts) for parts in written)
    alone = [statement for _, example, _ in written for statement in parse(example)]
    assert list(parse(text)) == alone
    assert is_complete(f"{text};")
    assert not is_complete(text)


@given(st.sampled_from(PLAIN), st.data())
def test_neither_case_nor_blanks_nor_comments_change_what_is_said(example: str, data: st.DataObject) -> None:
    glued = re.sub(" ", lambda _: data.draw(BETWEEN), example)
    cased = re.sub(r"\b[A-Z]{2,}\b", lambda match: data.draw(st.sampled_from([match[0], match[0].lower()])), glued)
    assert statements(parse(cased)) == statements(parse(example))


def statements(parsed: tuple[ParsedStatement, ...]) -> list[object]:
    return [each.statement for each in parsed]
