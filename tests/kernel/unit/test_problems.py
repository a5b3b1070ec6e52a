"""The problems of a process: what needs a person, in which order, since when, and what is to be done."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from calque.core.records.gap_states import GapState
from calque.model.gaps import GapCause
from calque.model.part_states import Failing
from calque.serve.known_facts import AsideObject, KnownFacts, LateTable, LostEvents, PausedPattern
from calque.serve.problems import (
    BEHIND_SECONDS,
    LOW_BYTES,
    RECENT_SECONDS,
    Problem,
    ProblemKind,
    Severity,
    problem_count,
    problems,
)
from calque.serve.samples import (
    CaptureSample,
    ChannelSample,
    ProcessSample,
    SourceSample,
    TargetSample,
    VerifiedSample,
)
from kernel.unit.test_docs import anchors, unknown_words
from support.places import ROOT

NOW = 1_800_000_000.0
CAPTURE = CaptureSample(state="running", problem=None, reachable=True, head=12, last=12)
TARGET = TargetSample(name="dr", state="running", problem=None, reachable=True, position=12, epoch=3)
FAILING = Failing(NOW - 240, 12, NOW + 8)
AWAY = "No metastore answers at thrift://lake:9083. Connection refused. Start it."
TABLE = AsideObject(
    target="dr", name="sales.x", kind="table", reason="it broke", since_event=7, since=NOW - 30, pattern="sales.x"
)
LATE = LateTable(target="dr", table="sales.late", state="waiting", shows=5, since=NOW - 90, reason="its files are not")
GAP = LostEvents(source="hq", target="", first=5, last=9, state="held", cause="purged", found_at=NOW - 60)


def process(capture: CaptureSample | None = CAPTURE, target: TargetSample = TARGET, **others: Any) -> ProcessSample:
    return ProcessSample(sources=(SourceSample(name="hq", capture=capture),), targets=(target,), **others)


def of_capture(**changes: Any) -> tuple[Problem, ...]:
    return problems(process(replace(CAPTURE, **changes)), KnownFacts(), NOW)


def of_target(**changes: Any) -> tuple[Problem, ...]:
    return problems(process(target=replace(TARGET, **changes)), KnownFacts(), NOW)


def of_facts(**facts: Any) -> tuple[Problem, ...]:
    return problems(process(), KnownFacts(**facts), NOW)


def test_where_all_goes_well_nothing_needs_a_person() -> None:
    assert problems(process(free_bytes=LOW_BYTES), KnownFacts(), NOW) == ()
    assert of_target(verified=VerifiedSample(NOW, 12, 0, is_whole=True), free_bytes=LOW_BYTES) == ()


@pytest.mark.parametrize(
    ("state", "what"), [("failing", "dr fails"), ("failed", "dr has failed"), ("running", "dr meets an error")]
)
def test_a_target_that_fails_says_since_when_how_often_it_was_tried_and_what_to_do(state: str, what: str) -> None:
    [found] = of_target(state=state, problem=AWAY, failing=FAILING)
    assert (found.kind, found.severity, found.what) == (ProblemKind.TARGET_FAILS, Severity.STOPPED, what)
    assert (found.reason, found.since, found.failing) == (AWAY, NOW - 240, FAILING)
    assert found.todo.startswith("Start the metastore")


@pytest.mark.parametrize(
    ("error", "todo", "command"),
    [
        ("No room to write file:/dr/x. No space left. Free space.", "Make room", "calque sweep"),
        (AWAY, "Start the metastore", "calque check"),
        ("Not permitted to write s3://b/x. Denied. Give it.", "Give calque's user that right", "calque reload"),
        ("The certificate of lake is not trusted. It expired. Renew it.", "Renew the certificate", "calque check"),
        ("The metastore at lake refuses calque. Wrong. Look.", "See what the metastore says", "calque check"),
        ("Something else. Who knows. Look.", "Do what the error says", "calque check"),
    ],
)
def test_what_to_do_follows_from_how_the_error_begins(error: str, todo: str, command: str) -> None:
    [found] = of_target(problem=error)
    assert (found.todo[: len(todo)], found.command) == (todo, command)


def test_capture_that_fails_says_how_far_the_journal_is_behind() -> None:
    [found] = of_capture(state="failing", problem=AWAY, failing=FAILING, head=1_012)
    assert (found.what, found.reason) == ("capture of hq fails", f"{AWAY} The journal lacks 1,000 events of hq.")
    assert found.todo.endswith("Until then no target gets newer events.")


def test_capture_that_does_not_fail_is_behind_once_its_lag_lasts() -> None:
    assert of_capture(head=20, lag_seconds=BEHIND_SECONDS - 1) == ()
    [found] = of_capture(head=20, lag_seconds=BEHIND_SECONDS)
    assert (found.kind, found.severity) == (ProblemKind.CAPTURE_BEHIND, Severity.LATE)
    assert (found.reason, found.since) == ("The journal lacks 8 events of hq.", NOW - BEHIND_SECONDS)


def test_a_process_that_does_not_capture_says_nothing_of_capture() -> None:
    assert problems(process(None), KnownFacts(), NOW) == ()


def test_differences_stay_a_problem_until_a_comparison_finds_none() -> None:
    [found] = of_target(verified=VerifiedSample(NOW - 5, 12, 2, is_whole=False))
    assert (found.what, found.severity, found.since) == ("dr differs from its source", Severity.WRONG, NOW - 5)
    assert found.reason == "The last comparison found 2 differences at event 12."
    assert (found.command, found.action) == ("calque repair --target dr", "repair")


def test_a_disk_that_is_nearly_full_is_told_and_a_full_one_only_by_its_error() -> None:
    [found] = of_target(free_bytes=LOW_BYTES - 1)
    assert (found.what, found.reason) == ("the disk of the warehouse of dr is nearly full", "1,000 MB are free.")
    [full] = of_target(free_bytes=0, problem="No room to write file:/dr/x. No space left. Free space.")
    assert full.kind is ProblemKind.TARGET_FAILS
    [state] = problems(process(free_bytes=5_000_000), KnownFacts(), NOW)
    assert (state.where, state.reason) == ("state folder", "5 MB are free.")


def test_a_thread_that_ended_and_a_target_without_a_process_are_told() -> None:
    found = problems(process(silent=("dr",)), KnownFacts(unserved=("lake",)), NOW)
    assert [one.what for one in found] == ["dr does not turn", "lake has no process"]
    assert found[1].command == "calque run --target lake"


def test_pauses_are_told_by_target_and_by_pattern_with_the_command_that_ends_them() -> None:
    patterns = [
        PausedPattern(target="dr", pattern="hr.*", since=NOW - 720, tables=1),
        PausedPattern(target="dr", pattern="tmp.*", since=None, tables=None),
    ]
    found = of_facts(paused={"dr": NOW - 60}, patterns=patterns)
    assert [(one.what, one.since) for one in found] == [
        ("hr.* is paused at dr", NOW - 720),
        ("dr is paused", NOW - 60),
        ("tmp.* is paused at dr", None),
    ]
    assert {one.severity for one in found} == {Severity.PAUSED}
    assert found[0].reason == "An operator holds these tables back. 1 table is held."
    assert found[0].command == "calque resume --target dr --tables 'hr.*'"
    assert (found[0].action, found[0].pattern, found[1].pattern) == ("resume", "hr.*", "")


@pytest.mark.parametrize("state", list(GapState))
@pytest.mark.parametrize("cause", list(GapCause))
def test_a_gap_is_told_in_each_of_its_states_and_says_what_was_lost(state: GapState, cause: GapCause) -> None:
    [found] = of_facts(gaps=[replace(GAP, state=state.value, cause=cause.value, target="dr")])
    assert (found.kind, found.since) == (ProblemKind.GAP, NOW - 60)
    assert found.severity is (Severity.NEWS if state is GapState.REPAIRED else Severity.WRONG)
    assert "9" in found.what


def test_a_gap_that_was_repaired_long_ago_is_over() -> None:
    repaired = replace(GAP, state="repaired")
    assert len(of_facts(gaps=[replace(repaired, found_at=NOW - RECENT_SECONDS + 1)])) == 1
    assert of_facts(gaps=[replace(repaired, found_at=NOW - RECENT_SECONDS - 1)]) == ()
    assert len(of_facts(gaps=[replace(GAP, found_at=NOW - RECENT_SECONDS - 1)])) == 1


def test_objects_in_quarantine_are_released_and_held_drops_too_each_by_its_command() -> None:
    held = replace(TABLE, name="sales.held", pattern="sales.held", is_held=True)
    database = replace(TABLE, name="sales", kind="database", pattern="sales.*")
    foreign = replace(TABLE, name="sales.f", pattern="sales.f", reason="it is not ours; say `calque adopt`")
    found = of_facts(aside=[TABLE, held, database, foreign], aside_counts={"dr": 4})
    assert [(one.what, one.command, one.action) for one in found] == [
        (
            "sales.x is in quarantine at dr",
            "calque quarantine release --target dr --tables sales.x",
            "release",
        ),
        ("sales.held is held at dr", "calque release-drops --target dr --tables sales.held", "release-drops"),
        (
            "database sales is in quarantine at dr",
            "calque quarantine release --target dr --tables 'sales.*'",
            "release",
        ),
        ("sales.f is in quarantine at dr", "calque adopt --target dr --tables sales.f", "release"),
    ]
    assert [one.table for one in found] == ["sales.x", "sales.held", "", "sales.f"]
    assert (found[0].since, found[0].since_event, found[0].reason) == (NOW - 30, 7, "it broke")


def test_a_table_that_waits_is_late_with_its_reason_and_one_that_is_copied_needs_nobody() -> None:
    copied = replace(LATE, table="sales.copied", state="staging")
    found = of_facts(late=[LATE, copied], late_counts={"dr": 2})
    assert [(one.what, one.command) for one in found] == [
        ("sales.late is late at dr", "calque bootstrap --target dr --tables sales.late"),
        ("sales.copied is late at dr", "calque status"),
    ]
    assert found[0].reason == "It is waiting and shows event 5: its files are not."
    assert (found[0].since, found[0].since_event) == (NOW - 90, 5)


def test_lists_that_were_cut_count_as_many_problems_as_they_stand_for() -> None:
    found = of_facts(
        aside=[TABLE],
        aside_counts={"dr": 100},
        late=[LATE],
        late_counts={"dr": 2},
        links_aside=[("a.b", "it broke")],
        links_aside_count=3,
    )
    assert problem_count(found) == 100 + 2 + 3
    assert {one.what for one in found if one.count > 1} == {
        "99 more objects are in quarantine at dr",
        "2 more links are set aside",
    }
    assert "1 more object is late at dr" in {one.what for one in found}


def test_the_most_harmful_comes_first_and_the_oldest_of_one_harm() -> None:
    found = problems(
        process(
            target=replace(TARGET, problem=AWAY, failing=FAILING, verified=VerifiedSample(NOW, 12, 1, is_whole=True)),
            channels=(ChannelSample(name="ops", state="failing", problem="It is away.", failing=FAILING),),
            silent=("hq",),
        ),
        KnownFacts(
            aside=[replace(TABLE, since=NOW - 10), replace(TABLE, name="sales.older", since=NOW - 500)],
            late=[LATE],
            gaps=[GAP, replace(GAP, state="repaired", found_at=NOW - 900)],
            paused={"dr": NOW - 9000},
            silent_clusters=[("east", "thrift://a:9083")],
        ),
        NOW,
    )
    assert [one.kind for one in found] == [
        ProblemKind.TARGET_FAILS,
        ProblemKind.SILENT,
        ProblemKind.GAP,
        ProblemKind.DIFFERENCES,
        ProblemKind.QUARANTINED,
        ProblemKind.QUARANTINED,
        ProblemKind.CHANNEL_FAILS,
        ProblemKind.LATE,
        ProblemKind.CLUSTER_SILENT,
        ProblemKind.PAUSED_TARGET,
        ProblemKind.GAP,
    ]
    assert [one.since for one in found if one.kind is ProblemKind.QUARANTINED] == [NOW - 500, NOW - 10]


EVERYTHING = problems(
    process(
        replace(CAPTURE, head=90, lag_seconds=900.0),
        replace(
            TARGET,
            problem=AWAY,
            failing=FAILING,
            verified=VerifiedSample(NOW, 12, 1, is_whole=True),
            free_bytes=LOW_BYTES - 1,
        ),
        channels=(ChannelSample(name="ops", state="failing", problem="It is away."),),
        silent=("dr",),
        free_bytes=0,
    ),
    KnownFacts(
        aside=[TABLE, replace(TABLE, is_held=True), replace(TABLE, reason="say `calque adopt`")],
        aside_counts={"dr": 9},
        late=[LATE, replace(LATE, state="reading")],
        late_counts={"dr": 9},
        paused={"dr": NOW},
        patterns=[PausedPattern(target="dr", pattern="hr.*", since=NOW, tables=3)],
        gaps=[replace(GAP, state=state.value) for state in GapState],
        unserved=["lake"],
        links_aside=[("a.b", "it broke")],
        links_aside_count=2,
        silent_clusters=[("east", "thrift://a:9083")],
    ),
    NOW,
) + of_capture(problem=AWAY, failing=FAILING)


def test_problems_of_every_kind_are_tried_here() -> None:
    assert {one.kind for one in EVERYTHING} == set(ProblemKind)


@pytest.mark.parametrize("one", EVERYTHING, ids=lambda one: one.what)
def test_every_problem_says_what_to_do_by_a_command_and_a_passage_that_exist(one: Problem) -> None:
    assert one.todo.endswith(".")
    if one.command:
        program, *words = shlex.split(one.command)
        assert (program, unknown_words(" ".join(words))) == ("calque", [])
    page, _, anchor = one.read.partition("#")
    if page:
        assert (ROOT / "docs" / page).is_file()
        assert not anchor or anchor in anchors(ROOT / "docs" / page)
