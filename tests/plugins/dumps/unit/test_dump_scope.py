"""`plugins.dumps.core.scope`: which names a policy takes, as the examples of Hive's own document have it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.dumps.core.dump_metadata import PolicyLine
from calque.plugins.dumps.core.scope import scope_of, scope_of_policy

NAMES = ["t3", "t400", "t255", "q4", "orders", "stores", "items_2", "t3x"]


def taken(include: Sequence[str] | None, exclude: Sequence[str] | None = None) -> list[str]:
    scope = scope_of("Sales", include, exclude)
    return [name for name in NAMES if scope.takes(TableName("sales", name))]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (None, None, NAMES),
        ([".*?"], None, NAMES),
        (["T3", "[a-z]+"], None, ["t3", "orders", "stores"]),
        ([".*?"], ["T[0-9]+", "Q4"], ["orders", "stores", "items_2", "t3x"]),
        ([], None, []),
        (["t3|t400"], None, ["t3", "t400"]),
        (["(?:t3|q4)", "o(?=r).*"], None, ["t3", "q4", "orders"]),
        ([r"\w+_\d"], None, ["items_2"]),
        (["t[0-9]+", "t3", "t3x?"], None, ["t3", "t400", "t255", "t3x"]),
        (["t.*"], ["t.*"], []),
        (["nothing"], None, []),
    ],
)
def test_a_policy_takes_what_matches_whole_in_any_case(
    include: list[str] | None, exclude: list[str] | None, expected: list[str]
) -> None:
    assert taken(include, exclude) == expected


def test_the_database_is_in_every_scope_and_another_in_none() -> None:
    scope = scope_of("sales", [], None)
    assert scope.takes(TableName("sales"))
    assert not scope.takes(TableName("hr"))
    assert not scope_of("sales", None, None).takes(TableName("hr", "t"))
    assert not scope_of("sales", None, None).takes_table("values__tmp__table__1")


def test_a_dump_says_its_policy_as_one_expression() -> None:
    assert scope_of("Sales", None, None).policy == PolicyLine("sales")
    assert scope_of("sales", ["T3", "[a-z]+"], ["x"]).policy == PolicyLine("sales", "(?:T3)|(?:[a-z]+)", "x")
    assert scope_of("sales", [], None).policy == PolicyLine("sales", "(?!)")
    assert not scope_of_policy(PolicyLine("sales", "(?!)")).takes_table("t")
    assert scope_of_policy(scope_of("sales", ["T3", "[a-z]+"], ["x"]).policy).takes_table("t3")


@pytest.mark.parametrize(
    "expression",
    [
        r"\p{Alpha}+",
        r"a\Z",
        r"\Qa\E",
        r"[a-z&&[^b]]",
        r"[a[b]]",
        r"[]a]",
        r"a{,3}",
        r"{a}",
        r"(?P<n>a)",
        r"(?<n>a)",
        r"(?i)a",
        r"a(?#x)",
        r"\v",
        r"\R",
        r"\07",
        "a\\",
        "(a",
        "a)",
        "[a",
        "*",
        "(?<=a+)b",
        "a{99999999999}",
    ],
)
def test_what_java_and_python_read_differently_is_refused(expression: str) -> None:
    with pytest.raises(Refused):
        scope_of("sales", [expression], None)


@pytest.mark.parametrize("expression", [r"a\.b", r"[a-z_]+\d*", "a{2,3}?", "(?>a|b)++", r"(a)\1", "^a$", r"[^\]\w]+"])
def test_what_both_read_alike_is_taken(expression: str) -> None:
    scope_of("sales", [expression], None)
