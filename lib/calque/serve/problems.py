"""The problems of a running process: everything that needs a person, with since when, and what to do: `problems`.

All who show problems show this list in this order, and count as it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from shlex import quote

from calque.core.records.gap_states import GapState
from calque.model.gaps import GapCause
from calque.model.names import EventId
from calque.model.part_states import FAILED, FAILING, Failing
from calque.serve.advice import (
    GAP_ADVICE,
    GAP_CURES,
    GAP_REASONS,
    NO_ROOM,
    advice,
    aside_advice,
    late_advice,
)
from calque.serve.known_facts import KnownFacts, LostEvents, PausedPattern
from calque.serve.samples import CaptureSample, ChannelSample, ProcessSample, TargetSample

LATE_SECONDS = 60.0
"""Seconds by which a table may lag behind its target before it counts as late."""
BEHIND_SECONDS = 20.0
"""Seconds by which a journal may lag behind its source before capture counts as behind, which takes events at once."""
LOW_BYTES = 1_000_000_000
"""Free bytes below which a disk counts as nearly full, as for the alert `CalqueDiskFillsUp`."""
RECENT_SECONDS = 3600.0
"""Seconds for which a gap that is repaired is still told, as by the alert `CalqueLogLostEvents`."""


class Severity(IntEnum):
    """The harm that a problem does, the greatest first."""

    STOPPED = 1
    """A part gets no further."""
    WRONG = 2
    """A target may differ from its source."""
    ASIDE = 3
    """Single objects are not replicated."""
    LATE = 4
    """Something is behind, or will stop soon."""
    PAUSED = 5
    """An operator holds something back."""
    NEWS = 6
    """It is over, and its cause may be there still."""


class ProblemKind(StrEnum):
    """The kind of a problem, which decides what is to be done."""

    SILENT = "silent"
    CAPTURE_FAILS = "capture_fails"
    TARGET_FAILS = "target_fails"
    NO_PROCESS = "no_process"
    CAPTURE_BEHIND = "capture_behind"
    DIFFERENCES = "differences"
    GAP = "gap"
    HELD = "held"
    QUARANTINED = "quarantined"
    LOW_SPACE = "low_space"
    LATE = "late"
    CHANNEL_FAILS = "channel_fails"
    LINKS_ASIDE = "links_aside"
    CLUSTER_SILENT = "cluster_silent"
    PAUSED_TARGET = "paused_target"
    PAUSED_TABLES = "paused_tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem. `what` says it in a few words, and `reason` why, as far as calque knows. `where` is the part or the
    object. Times are seconds since 1970. `todo` says what a person is to do, and `command` is what to type, empty where
    no command does it."""

    kind: ProblemKind
    severity: Severity
    what: str
    where: str
    reason: str = ""
    since: float | None = None
    """When it began, as far as is known."""
    since_event: EventId | None = None
    failing: Failing | None = None
    """The attempts so far, and the time of the next one; None where nothing is tried."""
    todo: str
    command: str = ""
    read: str = ""
    """The place in the documentation: a page's file with the anchor of a heading."""
    target: str = ""
    table: str = ""
    """The table of the target; empty for a problem of no single table."""
    action: str = ""
    """The action of the page that does the same as `command`; empty for none."""
    pattern: str = ""
    """The pattern of tables that the action takes; empty for the whole target."""
    count: int = 1
    """The number of problems that this stands for: more than one where a list was cut."""


def problems(sample: ProcessSample, facts: KnownFacts, now: float) -> tuple[Problem, ...]:
    """Return all problems, the most harmful first, and the oldest first among those of one severity. `now` is in
    seconds since 1970."""
    found = [
        *map(silent, sample.silent),
        *(problem for one in sample.sources if one.capture for problem in of_capture(one.name, one.capture, now)),
        *(problem for one in sample.targets for problem in of_target(one, facts)),
        *map(unserved, facts.unserved),
        *(problem for gap in facts.gaps if (problem := of_gap(gap, now)) is not None),
        *of_objects(facts),
        *of_late_tables(facts),
        *(of_pattern(one) for one in facts.patterns),
        *(of_channel(one) for one in sample.channels if one.problem is not None),
        *of_links(facts),
        *(of_cluster(name, address) for name, address in facts.silent_clusters),
    ]
    if sample.free_bytes is not None and sample.free_bytes < LOW_BYTES:
        found.append(low_space("state folder", sample.free_bytes))
    return tuple(sorted(found, key=lambda one: (one.severity, one.since or now)))


def problem_count(found: Iterable[Problem]) -> int:
    """Return how many problems the list stands for."""
    return sum(problem.count for problem in found)


# Parts


def silent(part: str) -> Problem:
    return Problem(
        kind=ProblemKind.SILENT,
        severity=Severity.STOPPED,
        what=f"{part} does not turn",
        where=part,
        reason="Its thread has ended, or has said nothing for half a minute.",
        todo="Send SIGUSR1 to the process, which then logs where its threads are; keep the log, and restart `run`.",
        read="operations.md#starting-and-stopping",
    )


def of_capture(source: str, capture: CaptureSample, now: float) -> Iterator[Problem]:
    """Yield that capture fails, with how far the journal is behind, or that it is behind although nothing fails."""
    missing = max((capture.head or 0) - capture.last, 0) if capture.last is not None else 0
    is_late = missing > 0 and capture.lag_seconds >= BEHIND_SECONDS
    behind = f"The journal lacks {counted(missing, 'event')} of {source}." if missing else ""
    if capture.problem is not None:
        todo, command = advice(capture.problem)
        yield Problem(
            kind=ProblemKind.CAPTURE_FAILS,
            severity=Severity.STOPPED,
            what=f"capture of {source} {verb(capture.state)}",
            where=f"source {source}",
            reason=" ".join(filter(None, (capture.problem, behind))),
            since=since_of(capture.failing),
            failing=capture.failing,
            todo=f"{todo} Until then no target gets newer events.",
            command=command,
            read="operations.md#when-something-fails",
        )
    elif is_late:
        yield Problem(
            kind=ProblemKind.CAPTURE_BEHIND,
            severity=Severity.LATE,
            what=f"capture of {source} is behind",
            where=f"source {source}",
            reason=behind,
            since=now - capture.lag_seconds,
            todo="See how long reads of the log take at the metastore, and whether this host has processors to spare.",
            command="calque check",
            read="operations.md#before-the-first-run",
        )


def of_target(target: TargetSample, facts: KnownFacts) -> Iterator[Problem]:
    paused_at = facts.paused.get(target.name)
    if target.problem is not None:
        todo, command = advice(target.problem)
        yield Problem(
            kind=ProblemKind.TARGET_FAILS,
            severity=Severity.STOPPED,
            what=f"{target.name} {verb(target.state)}",
            where=f"target {target.name}",
            reason=target.problem,
            since=since_of(target.failing),
            failing=target.failing,
            todo=todo,
            command=command,
            read="operations.md#when-something-fails",
            target=target.name,
        )
    if target.verified is not None and target.verified.differences:
        count = counted(target.verified.differences, "difference")
        yield Problem(
            kind=ProblemKind.DIFFERENCES,
            severity=Severity.WRONG,
            what=f"{target.name} differs from its source",
            where=f"target {target.name}",
            reason=f"The last comparison found {count} at event {target.verified.event_id}.",
            since=target.verified.at,
            todo="Look what differs, then have it read again. The next comparison says whether all is equal.",
            command=f"calque repair --target {quote(target.name)}",
            read="operations.md#something-looks-wrong",
            target=target.name,
            action="repair",
        )
    is_full = target.problem is not None and target.problem.startswith(NO_ROOM)
    if target.free_bytes is not None and target.free_bytes < LOW_BYTES and not is_full:
        yield low_space(f"warehouse of {target.name}", target.free_bytes, target.name)
    if paused_at is not None:
        yield Problem(
            kind=ProblemKind.PAUSED_TARGET,
            severity=Severity.PAUSED,
            what=f"{target.name} is paused",
            where=f"target {target.name}",
            reason="An operator holds it back.",
            since=paused_at or None,
            todo="Let it go on when the reason for the pause is over.",
            command=f"calque resume --target {quote(target.name)}",
            read="operations.md#pausing",
            target=target.name,
            action="resume",
        )


def unserved(target: str) -> Problem:
    return Problem(
        kind=ProblemKind.NO_PROCESS,
        severity=Severity.STOPPED,
        what=f"{target} has no process",
        where=f"target {target}",
        reason="The configuration has the target, and no running process replicates to it.",
        todo="Start one, or take the target out of the configuration.",
        command=f"calque run --target {quote(target)}",
        read="operations.md#starting-and-stopping",
    )


def low_space(where: str, free_bytes: int, target: str = "") -> Problem:
    return Problem(
        kind=ProblemKind.LOW_SPACE,
        severity=Severity.LATE,
        what=f"the disk of the {where} is nearly full",
        where=where,
        reason=f"{free_bytes / 1e6:,.0f} MB are free.",
        todo="Add space, or remove what nothing needs any more.",
        command=f"calque sweep --target {quote(target)}" if target else "calque sweep",
        read="operations.md#the-state-folder" if not target else "operations.md#when-something-fails",
        target=target,
    )


def of_channel(channel: ChannelSample) -> Problem:
    return Problem(
        kind=ProblemKind.CHANNEL_FAILS,
        severity=Severity.LATE,
        what=f"channel {channel.name} {verb(channel.state)}",
        where=f"channel {channel.name}",
        reason=channel.problem or "",
        since=since_of(channel.failing),
        failing=channel.failing,
        todo="Mend what the error names; notices that wait are sent then.",
        command="calque check",
        read="notices.md#looking-after-channels",
    )


# Gaps and objects


def of_gap(gap: LostEvents, now: float) -> Problem | None:
    """Return the problem of a gap; None of one that was repaired long ago."""
    is_repaired = gap.state == GapState.REPAIRED
    if is_repaired and gap.found_at < now - RECENT_SECONDS:
        return None
    where = f"target {gap.target}" if gap.target else f"source {gap.source}"
    severity = Severity.NEWS if is_repaired else Severity.WRONG
    todo, command = GAP_ADVICE[gap.state]
    return Problem(
        kind=ProblemKind.GAP,
        severity=severity,
        what=f"{gap_words(gap)}{' (repaired)' if is_repaired else ''}",
        where=where,
        reason=GAP_REASONS[gap.cause],
        since=gap.found_at,
        todo=f"{todo} {GAP_CURES[gap.cause]}",
        command=command,
        read="operations.md#gaps",
        target=gap.target,
    )


def gap_words(gap: LostEvents) -> str:
    span = f"event {gap.first}" if gap.first == gap.last else f"events {gap.first} to {gap.last}"
    match gap.cause:
        case GapCause.WENT_BACK:
            return f"the log of {gap.source} went back from event {gap.last} to {gap.first - 1}"
        case GapCause.REPEATED:
            return f"the log of {gap.source} has event {gap.last} twice"
        case GapCause.FORGOTTEN:
            return f"the journal lost {span} before {gap.target} had taken them"
        case _:
            return f"the log of {gap.source} lost {span}"


def of_objects(facts: KnownFacts) -> Iterator[Problem]:
    """Yield a problem for each object that is set aside, and one for all of a target that are not listed."""
    for one in facts.aside:
        todo, command, action = aside_advice(one)
        kind = "" if one.kind == "table" else f"{one.kind} "
        yield Problem(
            kind=ProblemKind.HELD if one.is_held else ProblemKind.QUARANTINED,
            severity=Severity.ASIDE,
            what=f"{kind}{one.name} is {'held' if one.is_held else 'in quarantine'} at {one.target}",
            where=f"{kind}{one.name} at {one.target}",
            reason=one.reason,
            since=one.since,
            since_event=one.since_event,
            todo=todo,
            command=command,
            read="operations.md#gaps" if one.is_held else "operations.md#when-something-fails",
            target=one.target,
            table=one.name if one.kind == "table" else "",
            action=action,
            pattern=one.pattern,
        )
    for target, count in facts.aside_counts.items():
        more = count - sum(one.target == target for one in facts.aside)
        if more > 0:
            yield rest(ProblemKind.QUARANTINED, Severity.ASIDE, target, more, "in quarantine", "calque quarantine list")


def of_late_tables(facts: KnownFacts) -> Iterator[Problem]:
    for one in facts.late:
        todo, command = late_advice(one.state, one.target, one.table)
        yield Problem(
            kind=ProblemKind.LATE,
            severity=Severity.LATE,
            what=f"{one.table} is late at {one.target}",
            where=f"{one.table} at {one.target}",
            reason=f"It is {one.state} and shows event {one.shows}{f': {one.reason}' if one.reason else ''}.",
            since=one.since,
            since_event=one.shows,
            todo=todo,
            command=command,
            read="operations.md#states-of-a-table",
            target=one.target,
            table=one.table,
        )
    for target, count in facts.late_counts.items():
        more = count - sum(one.target == target for one in facts.late)
        if more > 0:
            yield rest(ProblemKind.LATE, Severity.LATE, target, more, "late", "calque status")


def rest(kind: ProblemKind, severity: Severity, target: str, count: int, what: str, command: str) -> Problem:
    """Return the problem that stands for those of a target that a list does not have."""
    return Problem(
        kind=kind,
        severity=severity,
        what=f"{counted(count, 'more object')} {'is' if count == 1 else 'are'} {what} at {target}",
        where=f"target {target}",
        todo="See all of them in the tables of the target.",
        command=command,
        target=target,
        count=count,
    )


def of_pattern(one: PausedPattern) -> Problem:
    count = "" if one.tables is None else f" {counted(one.tables, 'table')} {'is' if one.tables == 1 else 'are'} held."
    return Problem(
        kind=ProblemKind.PAUSED_TABLES,
        severity=Severity.PAUSED,
        what=f"{one.pattern} is paused at {one.target}",
        where=f"tables {one.pattern} at {one.target}",
        reason=f"An operator holds these tables back.{count}",
        since=one.since,
        todo="Let them go on when the reason for the pause is over.",
        command=f"calque resume --target {quote(one.target)} --tables {quote(one.pattern)}",
        read="operations.md#pausing",
        target=one.target,
        action="resume",
        pattern=one.pattern,
    )


def of_links(facts: KnownFacts) -> Iterator[Problem]:
    for name, reason in facts.links_aside:
        yield Problem(
            kind=ProblemKind.LINKS_ASIDE,
            severity=Severity.ASIDE,
            what=f"link {name} is set aside",
            where=f"link {name}",
            reason=reason,
            todo="Mend what the reason names; the link goes on by itself.",
            read="remotes.md",
        )
    more = facts.links_aside_count - len(facts.links_aside)
    if more > 0:
        yield Problem(
            kind=ProblemKind.LINKS_ASIDE,
            severity=Severity.ASIDE,
            what=f"{counted(more, 'more link')} {'is' if more == 1 else 'are'} set aside",
            where="links",
            todo="See all of them among the links.",
            count=more,
        )


def of_cluster(name: str, address: str) -> Problem:
    return Problem(
        kind=ProblemKind.CLUSTER_SILENT,
        severity=Severity.LATE,
        what=f"cluster {name} does not answer",
        where=f"cluster {name}",
        reason=f"No metastore answers at {address}.",
        todo="Start the metastore, or correct its address. Statements go to other clusters meanwhile.",
        read="clusters.md",
    )


def verb(state: str) -> str:
    """Return what a part does that has an error: one failed call does not make it fail yet."""
    if state == FAILED:
        return "has failed"
    return "fails" if state == FAILING else "meets an error"


def since_of(failing: Failing | None) -> float | None:
    return None if failing is None else failing.since


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
