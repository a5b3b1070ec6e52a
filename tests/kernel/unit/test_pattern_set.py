"""Many patterns asked as one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from calque.core.policy.pattern_set import PatternSet
from calque.core.policy.patterns import covers, matches, may_touch, parse_pattern
from calque.model.names import TableName

PARTS = ("sales", "hr", "sal*", "*", "**", "h?", "[sh]ales")
PATTERNS = st.one_of(
    st.tuples(st.sampled_from(PARTS), st.sampled_from(("a", "b", *PARTS))).map(".".join),
    st.sampled_from(["/sales[.]a|hr[.].*/", "/.*[.]b/", "/hr.*/", "/(?!hr).*/"]),
)
NAMES = [TableName(database, table) for database in ("sales", "hr", "x") for table in ("a", "b", "sales")]


@given(st.lists(PATTERNS, max_size=4))
def test_a_set_of_patterns_says_what_any_of_them_says(texts: list[str]) -> None:
    patterns = [parse_pattern(text) for text in texts]
    asked = PatternSet(patterns)
    for name in NAMES:
        assert asked.matches(name) == any(matches(pattern, name) for pattern in patterns)
        assert asked.covers(name.database) == any(covers(pattern, name.database) for pattern in patterns)
        assert asked.may_touch(name.database) == any(may_touch(pattern, name.database) for pattern in patterns)
