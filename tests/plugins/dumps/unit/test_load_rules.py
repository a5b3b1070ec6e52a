"""What a load of a dump goes by: passes, contents by event, policies, and which dumps follow on what is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.events.contents_by_event import contents_by_event
from calque.core.events.decode import LoggedFile
from calque.errors import Refused
from calque.model.files import File, FilesOfEvent, KeptFile, Listing
from calque.model.hive import Database
from calque.model.policy import Policy
from calque.plugins.dumps.adapters.find_files import paths_of
from calque.plugins.dumps.core.load_policy import DumpSpan, is_loaded, load_policy, require_policy, require_takeable
from calque.plugins.dumps.core.load_slices import LONGEST, LoadPass, next_pass
from calque.plugins.dumps.core.scope import scope_of

PLACE = "file:/source/t"
POLICY = Policy("dr", "hq", include=("sales.*",), rename={"sales": "sales_dr"})


# Passes


def test_100_external_tables_and_10000_events_in_200_tasks_on_8_threads_begin_with_7_copies_and_193_events() -> None:
    """Document "Doing right by External Tables": "we should only create 7 external table distcp jobs at root level,
    with DAG for 193 events out of 10000 for incremental for the first pass DAG"."""
    assert next_pass(copies=100, events=10_000, tasks=200, threads=8) == LoadPass(copies=7, events=193)


def passes(copies: int, events: int, tasks: int, threads: int) -> list[LoadPass]:
    done = []
    while copies or events:
        done.append(next_pass(copies, events, tasks, threads))
        assert done[-1] != LoadPass(0, 0)
        copies, events = copies - done[-1].copies, events - done[-1].events
    return done


@pytest.mark.parametrize("tasks", [1, 2, 200, 100_000])
@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize(("copies", "events"), [(0, 10_000), (100, 0), (100, 10_000), (1, 1)])
def test_passes_end_and_never_hold_more_than_the_tasks(copies: int, events: int, tasks: int, threads: int) -> None:
    done = passes(copies, events, tasks, threads)
    assert (sum(step.copies for step in done), sum(step.events for step in done)) == (copies, events)
    assert all(step.copies + step.events <= tasks and step.events <= LONGEST for step in done)


def test_without_external_tables_all_tasks_are_events() -> None:
    assert next_pass(0, 10_000, 200, 8) == LoadPass(0, 200)


# Contents


def files(*names: str, size: int = 1) -> FilesOfEvent:
    listed = tuple(File(name, size, size) for name in names)
    return FilesOfEvent(Listing(PLACE, listed, kept=tuple(KeptFile(n, f"file:/cm/{n}", size) for n in names)), True)


def added(*names: str, size: int = 1) -> FilesOfEvent:
    return FilesOfEvent(files(*names, size=size).listing, is_whole=False)


def names_of(listing: Listing) -> list[tuple[str, int]]:
    return [(file.path, file.size) for file in listing.files]


def test_contents_follow_from_what_events_bring_and_replace() -> None:
    said = {1: files("a"), 2: added("b"), 3: added(), 4: files("c")}
    contents = contents_by_event(PLACE, None, [1, 2, 3, 4], said)
    assert [names_of(contents[event]) for event in (1, 2, 3, 4)] == [
        [("a", 1)],
        [("a", 1), ("b", 1)],
        [("a", 1), ("b", 1)],
        [("c", 1)],
    ]


def test_a_file_that_comes_again_replaces_the_one_of_its_name() -> None:
    base = Listing("file:/target/t", (File("a", 1, 1), File("b", 1, 1)))
    (content,) = contents_by_event(PLACE, base, [5], {5: added("a", size=2)}).values()
    assert names_of(content) == [("a", 2), ("b", 1)]
    assert [(kept.path, kept.source) for kept in content.kept] == [("a", "file:/cm/a"), ("b", "file:/target/t/b")]


def test_a_file_that_comes_again_with_its_size_is_the_one_that_is_there() -> None:
    base = Listing("file:/target/t", (File("a", 1, 7),))
    (content,) = contents_by_event(PLACE, base, [5], {5: added("a")}).values()
    assert content.files == base.files


def test_behind_a_missing_file_contents_are_unknown_until_one_is_said_whole() -> None:
    said = {1: files("a"), 2: FilesOfEvent(None, is_whole=False), 3: added("b"), 4: files("c"), 6: added("d")}
    contents = contents_by_event(PLACE, None, [1, 2, 3, 4, 5, 6], said)
    assert contents.keys() == {1, 4}


# Files that dumps name


def test_files_have_their_paths_below_their_object_and_none_leaves_it() -> None:
    place = "hdfs://ns/wh/t/p=1"
    named = [LoggedFile(f"{place}/a"), LoggedFile(f"{place}/sub/b", directory="sub"), LoggedFile(f"{place}/_SUCCESS")]
    assert paths_of(place, named).keys() == {"a", "sub/b"}
    assert paths_of(place, [LoggedFile("hdfs://ns/elsewhere/c", directory="d")]).keys() == {"d/c"}
    for leaving in (LoggedFile(f"{place}/../p=2/a"), LoggedFile("hdfs://ns/elsewhere/c", directory="../../other")):
        with pytest.raises(Refused, match=r"steps upwards|leaves the table"):
            paths_of(place, [leaving])


# Policies


def test_a_target_of_that_database_alone_is_followed_by_run_too() -> None:
    chosen = load_policy(POLICY, "hq", "sales", "sales_dr", "")
    assert chosen.is_own
    assert chosen.policy == replace(POLICY, max_drop=1.0)


@pytest.mark.parametrize(
    ("include", "local"), [(("*.*",), "sales_dr"), (("sales.*", "hr.*"), "sales_dr"), (("sales.*",), "other")]
)
def test_another_target_keeps_a_ledger_of_the_databases_loads(include: tuple[str, ...], local: str) -> None:
    policy = Policy("dr", "hq", include=include, rename={"sales": "sales_dr"}, start=7, external_base="file:/e")
    chosen = load_policy(policy, "hq", "sales", local, "")
    assert not chosen.is_own
    assert (chosen.policy.include, chosen.policy.rename) == (("sales.*",), {"sales": local})
    assert (chosen.policy.start, chosen.policy.external_base) == (None, "file:/e")


def test_a_dump_of_another_source_is_not_what_run_follows() -> None:
    chosen = load_policy(POLICY, "other", "sales", "sales_dr", "")
    assert (chosen.is_own, chosen.policy.source) == (False, "other")


# What may be loaded

INCREMENT = DumpSpan("file:/dump", 200, 300, is_bootstrap=False)
BOOTSTRAP = DumpSpan("file:/dump", 200, 200, is_bootstrap=True)


@pytest.mark.parametrize(
    ("dump", "shown", "loaded"),
    [
        (BOOTSTRAP, None, False),
        (BOOTSTRAP, 100, False),
        (BOOTSTRAP, 200, True),
        (BOOTSTRAP, 250, True),
        (INCREMENT, 200, False),
        (INCREMENT, 250, False),
        (INCREMENT, 300, True),
        (INCREMENT, 400, True),
    ],
)
def test_dumps_that_follow_are_loaded_and_those_that_are_there_are_not(
    dump: DumpSpan, shown: int | None, loaded: bool
) -> None:
    assert is_loaded(dump, shown) is loaded


def test_an_increment_that_does_not_follow_is_refused_with_both_ids() -> None:
    with pytest.raises(Refused, match=r"goes on from event 200, and the target shows event 150.*FROM 150"):
        is_loaded(INCREMENT, 150)
    with pytest.raises(Refused, match=r"goes on from event 200, and nothing of its database was loaded"):
        is_loaded(INCREMENT, None)


@pytest.mark.parametrize(
    ("parameters", "shown", "message"),
    [
        ({}, None, r"exists at the target, and carries no repl\.last\.id"),
        ({"repl.last.id": "80"}, None, "was loaded by Hive, and shows event 80"),
        ({"calque.source": "other:sales"}, None, "is the replica of other:sales.*The dump is of hq:sales"),
        ({"calque.source": "hq:hr"}, 12, "is the replica of hq:hr"),
    ],
)
def test_a_database_of_somebody_else_is_refused(parameters: dict[str, str], shown: int | None, message: str) -> None:
    with pytest.raises(Refused, match=message):
        require_takeable(Database("sales", parameters=parameters), "sales", "hq", "sales", shown)


def test_a_database_that_is_not_there_or_is_this_replica_is_taken() -> None:
    require_takeable(None, "sales", "hq", "sales", None)
    require_takeable(Database("sales", parameters={"calque.source": "hq:sales"}), "sales", "hq", "sales", None)


@pytest.mark.parametrize("dumped", [None, ["a", "b"], ["b"]])
@pytest.mark.parametrize("asked", [None, ["b"]])
def test_a_dump_of_another_policy_than_the_statement_names_is_refused(
    dumped: list[str] | None, asked: list[str] | None
) -> None:
    """Where the statement names no tables any dump of the database is meant."""
    dump, statement = (scope_of("Sales", tables, None).policy for tables in (dumped, asked))
    if asked is None or dumped == asked:
        require_policy(PLACE, dump, statement)
        return
    for line in (dump, None):
        with pytest.raises(Refused, match="is not of the policy that the statement names"):
            require_policy(PLACE, line, statement)
