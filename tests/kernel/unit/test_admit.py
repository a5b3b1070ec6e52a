"""What a policy takes, and under which names."""

from __future__ import annotations

import pytest

from calque.core.images.overlap import common_text, shared_name
from calque.core.policy.admit import Admission
from calque.errors import Refused
from calque.model.names import TableName
from calque.model.policy import Policy


def admission(
    include: tuple[str, ...] = ("*.*",), exclude: tuple[str, ...] = (), rename: dict[str, str] | None = None
) -> Admission:
    return Admission(Policy("dr", "hq", include=include, exclude=exclude, rename=rename or {}))


def name(text: str) -> TableName:
    database, _, table = text.partition(".")
    return TableName(database, table)


@pytest.mark.parametrize(
    ("include", "exclude", "taken", "left"),
    [
        (("sales.*", "hr.staff"), ("*.tmp_*",), ("sales.a", "SALES.A", "hr.Staff"), ("sales.tmp_1", "hr.x", "x.y")),
        (("sales_?.[ab]*",), (), ("sales_1.a", "sales_1.bb"), ("sales_.a", "sales_1.c", "sales_12.a")),
        (("sales.[!a]*",), (), ("sales.b",), ("sales.a",)),
        (("/sales_[0-9]+[.].*/",), (), ("sales_1.a", "SALES_22.B"), ("sales_.a", "xsales_1.a")),
        (("/sales[.]a|hr[.]b/",), ("/.*[.]b/",), ("sales.a",), ("hr.b", "sales.ab")),
        (("*.*",), (), ("a.b",), ("_calque.lease", "a._calque_x", "_CALQUE_hidden.t")),
        ((), (), (), ("a.b",)),
    ],
)
def test_exclude_wins_case_does_not_count_and_ours_are_never_taken(
    include: tuple[str, ...], exclude: tuple[str, ...], taken: tuple[str, ...], left: tuple[str, ...]
) -> None:
    policy = admission(include, exclude)
    asked = (*taken, *left)
    assert [text for text in asked if policy.takes(name(text))] == list(taken)


@pytest.mark.parametrize(
    ("include", "exclude", "database", "taken", "touched"),
    [
        (("sales.*",), (), "Sales", True, True),
        (("sales.**",), (), "sales", True, True),
        (("sales.a*",), (), "sales", False, True),
        (("sales.?*",), (), "sales", False, True),
        (("sales.*",), ("*.tmp_*",), "sales", True, True),
        (("sales.*",), ("sales.*",), "sales", False, False),
        (("*.*",), ("/sales[.].*/",), "sales", False, False),
        (("*.*",), (), "_calque", False, False),
        (("hr.*",), (), "sales", False, False),
        (("/.*/",), (), "sales", True, True),
        (("/^sales[.].*$/",), (), "sales", True, True),
        ((r"/(sales|hr)\..+/",), (), "hr", True, True),
        (("/hr[.]x|sales.*/",), (), "sales", True, True),
        (("/sales.*/",), (), "sales_eu", True, True),
        (("/sales.*/",), (), "hr", False, False),
        ((r"/sales\.a.*/",), (), "sales", False, True),
        ((r"/sales\.(?!tmp_).*/",), (), "sales", False, True),
        ((r"/sales\..\.*/",), (), "sales", False, True),
        ((r"/sal+es\.a/",), (), "hr", False, False),
        (("/[a-z]+[.]a/",), (), "hr", False, True),
        (("/hrx?[.]a/",), (), "hr", False, True),
    ],
)
def test_a_database_is_taken_when_a_pattern_covers_it_and_touched_when_a_table_may_be(
    include: tuple[str, ...], exclude: tuple[str, ...], database: str, taken: bool, touched: bool
) -> None:
    policy = admission(include, exclude)
    assert (policy.takes_database(database), policy.touches_database(database)) == (taken, touched)
    assert policy.takes(TableName(database)) is taken


def test_functions_go_with_their_database_unless_excluded() -> None:
    policy = admission(("sales.*", "hr.a*"), ("*.tmp_*",))
    assert [text for text in ("sales.f", "sales.tmp_f", "hr.af") if policy.takes_function(name(text))] == ["sales.f"]


def test_a_table_rename_wins_over_its_databases_and_both_have_a_way_back() -> None:
    policy = admission(("sales.*", "hr.staff"), rename={"sales": "sales_dr", "hr.staff": "people.staff"})
    pairs = {"SALES.X": "sales_dr.x", "sales": "sales_dr", "HR.Staff": "people.staff"}
    for source, target in pairs.items():
        assert policy.name_at_target(name(source)) == name(target)
        assert policy.source_of(name(target.upper())) == name(source.lower())
    unwritten = ("sales.x", "sales", "hr.staff", "people.other", "people", "other.x")
    assert [policy.source_of(name(text)) for text in unwritten] == [None] * len(unwritten)


def test_a_database_that_is_only_touched_has_a_way_back_too() -> None:
    policy = admission(("sales.a*",), rename={"sales": "b"})
    assert policy.source_of(TableName("b")) == TableName("sales")
    assert policy.source_of(TableName("b", "x")) is None


def test_collisions_name_the_first_and_each_later_one() -> None:
    policy = admission(rename={"a": "c", "b.t": "c.t"})
    found = policy.collisions(map(name, ("a.t", "c.t", "b.t", "A.T", "a.x")))
    assert found == [(name("a.t"), name("c.t")), (name("a.t"), name("b.t"))]


@pytest.mark.parametrize(
    ("include", "rename", "found"),
    [
        (("a.*", "b.*"), {"a": "b"}, [(name("a"), name("b"))]),
        (("a.*", "b.*"), {"a": "b", "b": "a"}, []),
        (("a.t", "b.t"), {"a": "b"}, [(name("a.t"), name("b.t"))]),
        (("a.x", "b.t"), {"a": "b"}, []),
        (("*.*",), {"a": "b"}, []),
        (("a.t", "b.t"), {"a.t": "b.t"}, [(name("a.t"), name("b.t"))]),
    ],
)
def test_only_names_that_the_policy_itself_writes_prove_a_collision(
    include: tuple[str, ...], rename: dict[str, str], found: list[tuple[TableName, TableName]]
) -> None:
    assert admission(include, rename=rename).provable_collisions() == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sales", 'pattern "sales" names no table. A pattern is database.table. Write "sales.*".'),
        ("*", 'pattern "*" names no table. A pattern is database.table. Write "*.*".'),
        ("sales.*, hr.*", '"sales.*, hr.*" is no pattern. A pattern is one database.table'),
        ("a.b.c", '"a.b.c" is no pattern.'),
        ("a.[b", '"a.[b" is no pattern.'),
        (".b", '".b" is no pattern.'),
        ("", '"" is no pattern.'),
        ("/a[.]b", '"/a[.]b" is no pattern. A regular expression stands between two slashes.'),
        ("//", '"//" is no pattern.'),
        ("/a(/", '"/a(/" is no regular expression. Missing ), unterminated subpattern at position 1.'),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_form_that_would_do(text: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        admission((text,))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("a*", "*b", True),
        ("a*b", "a?b", True),
        ("a*b*c", "*d*", True),
        ("tmp_*", "[!t]*", False),
        ("a", "b", False),
        ("[ab]x", "[bc]x", True),
        ("[ab]x", "[cd]x", False),
        ("[z-a]", "*", False),
        ("a?", "a", False),
        ("*", "*", True),
    ],
)
def test_two_globs_share_a_text_or_do_not(one: str, other: str, common: bool) -> None:
    assert (common_text(one, other) is not None, common_text(other, one) is not None) == (common, common)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (admission(), admission(), True),
        (admission(("sales.*",)), admission(("hr.*",)), False),
        (admission(("sales.*",)), admission(("hr.*",), rename={"hr": "sales"}), True),
        (admission(("sales.*",), rename={"sales": "a"}), admission(("sales.*",), rename={"sales": "b"}), False),
        (admission(("sales.*",), rename={"sales": "a"}), admission(("sales.*",)), False),
        (admission(rename={"sales": "a"}), admission(("a.x",)), True),
        (admission(("sales.*",), ("*.tmp_*",)), admission(("sales.tmp_*",)), False),
        (admission(("hr.staff",), rename={"hr.staff": "a.b"}), admission(("a.*",)), True),
        (admission((r"/sales_\d+[.].*/",)), admission((r"/sales_\d+[.].*/",)), True),
        (admission((r"/sales[.].*/",)), admission(("sales.orders",)), True),
        (admission((r"/sales[.].*/",)), admission(("hr.*",)), False),
    ],
)
def test_two_policies_write_one_name_or_do_not(one: Admission, other: Admission, shared: bool) -> None:
    assert (bool(shared_name(one, other)), bool(shared_name(other, one))) == (shared, shared)


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (admission(), admission(), "*.*"),
        (admission(), admission(("sales.*",)), "sales.*"),
        (admission(("sal*.*",)), admission(("sales.*",)), "sales.*"),
        (admission(("sales.*",)), admission(("*.orders",)), "sales.orders"),
        (admission(("hr.staff",), rename={"hr.staff": "a.b"}), admission(), "a.b"),
        (admission((r"/sales[.].*/",)), admission((r"/sales[.].*/",)), "/sales[.].*/"),
    ],
)
def test_people_read_no_invented_name_of_what_two_policies_write(one: Admission, other: Admission, shown: str) -> None:
    found = shared_name(one, other)
    assert found is not None
    assert found.pattern == shown
