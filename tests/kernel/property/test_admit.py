"""Laws of admission, over generated policies and names from a small world where everything meets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from calque.core.images.overlap import common_text, shared_name
from calque.core.policy.admit import Admission
from calque.core.policy.patterns import parse_pattern
from calque.model.names import TableName
from calque.model.policy import Policy

WORDS = ("a", "b", "ab", "ba", "abc", "_calque_x")
NAMES = [TableName(database, table) for database in WORDS for table in (*WORDS, "c", "zz")]

parts = st.text(alphabet="abc*?", min_size=1, max_size=3)
globs = st.builds("{}.{}".format, parts, parts)
expressions = st.builds(
    "/{}{}{}/".format,
    st.sampled_from(["a", "b", "(a|b)", "a?b", "[ab]+", ".*", "", "a|b", "(?:ab)"]),
    st.sampled_from(["[.]", r"\.", ".", ""]),
    st.sampled_from([".*", ".+", "a", "a.*", r"\w+", "[^a].*", "(?!a).*", r"a|ab\..*", ".*$"]),
).filter(lambda text: len(text) > 2)
patterns = st.lists(globs | expressions, max_size=3).map(tuple)
words = st.sampled_from(WORDS[:4])
tables = st.builds("{}.{}".format, words, words)
renames = st.one_of(
    st.dictionaries(words, words, max_size=3), st.dictionaries(tables, tables, max_size=3), st.just({})
).filter(lambda mapping: len(set(mapping.values())) == len(mapping))
admissions = st.builds(
    lambda include, exclude, rename: Admission(Policy("dr", "hq", include=include, exclude=exclude, rename=rename)),
    patterns,
    patterns,
    renames,
)


@given(admissions)
def test_a_covered_database_has_all_its_tables_but_the_excluded_and_an_untouched_one_has_none(
    policy: Admission,
) -> None:
    excluded = Admission(Policy("dr", "hq", include=policy.policy.exclude))
    for name in NAMES:
        if policy.takes(name):
            assert policy.touches_database(name.database)
        elif policy.takes_database(name.database):
            assert excluded.takes(name) or name.table.startswith("_calque")


@given(admissions)
def test_names_lead_there_and_back_unless_they_collide(policy: Admission) -> None:
    taken = [name for name in NAMES if policy.takes(name)]
    targets = [policy.name_at_target(name) for name in taken]
    colliding = {name for pair in policy.collisions(NAMES) for name in pair}
    assert colliding == {name for name, target in zip(taken, targets, strict=True) if targets.count(target) > 1}
    for name, target in zip(taken, targets, strict=True):
        assert policy.source_of(target) == name or name in colliding
    for target in NAMES:
        source = policy.source_of(target)
        assert (source is None) == (target not in targets)
        assert source is None or (policy.name_at_target(source) == target and policy.takes(source))


@given(admissions)
def test_case_never_counts(policy: Admission) -> None:
    for name in NAMES:
        shouted = TableName(name.database.upper(), name.table.upper())
        assert policy.takes(shouted) == policy.takes(name)
        assert policy.name_at_target(shouted) == policy.name_at_target(name)


@given(parts, parts)
def test_a_common_text_matches_both_and_none_means_none(one: str, other: str) -> None:
    def admits(glob: str, text: str) -> bool:
        return Admission(Policy("dr", "hq", include=(f"a.{glob}",))).takes(TableName("a", text))

    common = common_text(one, other)
    if common is None:
        assert not any(admits(one, word) and admits(other, word) for word in WORDS)
    else:
        assert admits(one, common)
        assert admits(other, common)


@given(admissions, admissions)
def test_a_shared_name_is_written_by_both(one: Admission, other: Admission) -> None:
    shared = shared_name(one, other)
    if shared is not None and not shared.name.startswith("/"):
        target = TableName(*shared.name.split(".", 1))
        assert one.source_of(target)
        assert other.source_of(target)


@given(globs | expressions)
def test_every_pattern_that_is_made_here_is_one(text: str) -> None:
    assert parse_pattern(text)
