"""The command `calque demo`: the whole system on one machine, from metastores to a verified replica."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import CommandSettings, duration, examples, journal_format, shared
from calque.commands.output import counted, print_json, print_line, print_rows
from calque.errors import Unavailable

if TYPE_CHECKING:
    from calque.demo.invitation import Invitation
    from calque.demo.outcome import Outcome, TargetOutcome
    from calque.demo.run import DemoOptions

SECONDS = 30.0
SHOWN = 20
NOTHING: Mapping[str, Any] = {
    "equal": False,
    "source": {"head": 0, "changes": {}, "seconds": 0.0},
    "targets": {},
    "kept": None,
    "stay": None,
}
"""The document of a demo that was ended before it compared anything."""
HEADINGS = ("target", "epochs", "events", "hops", "calls", "files", "bytes", "bridges", "parts", "read again")


@click.command(
    "demo",
    epilog=examples(
        "calque demo",
        "calque demo --stay",
        "calque demo --targets 3 --seconds 60 --keep /tmp/demo",
        "calque demo --journal kafka",
    ),
)
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Work in this folder and leave it there.")
@click.option("--targets", metavar="N", type=click.IntRange(min=1), default=2, show_default=True, help="How many.")
@click.option("--seconds", metavar="S", type=duration, help="How long the writer writes.  [default: 30s]")
@click.option(
    "--journal", metavar="delta|kafka", type=journal_format, default="delta", help="Kafka comes with a broker."
)
@click.option("--stay", is_flag=True, help="Go on until Ctrl-C, with a page and all that can be tried.")
@shared
@click.pass_obj
def command(
    settings: CommandSettings, keep: Path | None, targets: int, seconds: float | None, journal: str, stay: bool
) -> int:
    """Replicate a sample warehouse between real metastores.

    Starts a source, targets and a writer that keeps changing the source; shows progress; stops the writer, drains, and
    verifies every target. Exit 0 only if they are equal. One that fails keeps its folder and names it.

    With --stay it goes on then, with a slow writer, and says what to try in another terminal. Ctrl-C ends it, with 0.
    """
    from calque.demo.run import DemoOptions

    written = SECONDS if seconds is None else seconds
    return run(settings, DemoOptions(keep=keep, targets=targets, seconds=written, journal=journal, stays=stay))


def run(settings: CommandSettings, options: DemoOptions) -> int:
    """Run the demo, print its outcome and return the exit code."""
    from calque.demo.run import run_demo

    outcomes: list[Outcome] = []

    def show(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if settings.json:
            print_json(document(outcome))
        else:
            summarise(outcome)
        sys.stdout.flush()

    try:
        run_demo(options, sys.stderr if settings.json else sys.stdout, settings.app, show)
    except KeyboardInterrupt:
        if not options.stays:
            raise
        if settings.json and not outcomes:
            print_json(NOTHING)
        return 0
    return outcomes[0].code


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the document of `calque demo --json`."""
    return {
        "equal": outcome.code == 0,
        "source": {"head": outcome.head, "changes": outcome.changes, "seconds": round(outcome.seconds, 1)},
        "targets": {
            name: {
                "equal": target.code == 0,
                "position": target.position,
                "work": target.work,
                "verify": target.verified.document,
                "problems": problems(target),
            }
            for name, target in outcome.targets.items()
        },
        "kept": str(outcome.kept) if outcome.kept else None,
        "stay": invited(outcome.invitation) if outcome.invitation else None,
    }


def invited(invitation: Invitation) -> dict[str, Any]:
    return {
        "page": invitation.page,
        "token": invitation.token,
        "configuration": str(invitation.configuration),
        "try": [{"does": one.does, "line": one.line} for one in invitation.suggestions],
    }


def problems(target: TargetOutcome) -> list[str]:
    return [answer.problem for answer in (target.waited, target.verified) if answer.problem]


def summarise(outcome: Outcome) -> None:
    changes = sum(outcome.changes.values())
    print_line("")
    print_line(f"The source made {changes} changes in {outcome.seconds:.0f} s and is at event {outcome.head}.")
    print_line("")
    print_rows(HEADINGS, [row(name, target) for name, target in outcome.targets.items()])
    print_line("")
    for name, target in outcome.targets.items():
        print_line(f"{name} {result(target)}{counts(target)}")
        for problem in problems(target):
            print_line(f"{name}: {problem}")
        differences = target.verified.document.get("differences", ())
        for difference in differences[:SHOWN]:
            print_line(f"{name}: {difference_text(difference)}")
        if len(differences) > SHOWN:
            print_line(f"{name}: and {len(differences) - SHOWN} more differences")
        for skipped in target.verified.document.get("set_aside", ()):
            print_line(f"{name}: {skipped['table']} is set aside ({skipped['state']}): {skipped['reason']}")
    if outcome.kept:
        print_line("")
        print_line(f"Kept in {outcome.kept}: the files, ledgers and logs.")
    if outcome.invitation:
        invite(outcome.invitation)
    elif outcome.kept:
        print_line("The metastores stop now.")


def invite(invitation: Invitation) -> None:
    """Print what can be tried, until Ctrl-C."""
    print_line("")
    print_line("All of it goes on until Ctrl-C, and the writer writes slowly.")
    print_line(f"The page: {invitation.page}")
    print_line(f"Its token: {invitation.token}")
    print_line(f"The configuration: {invitation.configuration}")
    print_line("")
    print_line("Now try, in another terminal:")
    for suggestion in invitation.suggestions:
        print_line("")
        print_line(f"  # {suggestion.does}")
        print_line(f"  {suggestion.line}")


def row(name: str, target: TargetOutcome) -> tuple[object, ...]:
    """Return the cells of a target's row in the last table of `calque demo`: its name, then how many epochs, events,
    hops, calls, files, bytes, bridges and parts, and the rereads by cause."""
    from rich.filesize import decimal

    work = target.work
    exceptions = (work.bridges, work.parts, by_cause(work.rereads))
    return name, work.epochs, work.events, work.hops, work.calls, work.files, decimal(work.bytes), *exceptions


def counts(target: TargetOutcome) -> str:
    """Return the event at which the target was compared, and what was, as the end of a sentence; empty where it was
    not."""
    compared = target.verified.document.get("compared", {})
    if not compared:
        return ""
    amounts = ", ".join(counted(compared[kind], kind.removesuffix("s")) for kind in ("tables", "partitions", "files"))
    return f" at event {target.position}: {amounts}"


def by_cause(counts: Mapping[str, int]) -> str:
    """Return how many there are, and why, as a text: `3 (2 hole, 1 operator)`."""
    causes = ", ".join(f"{count} {cause}" for cause, count in counts.items() if count)
    return f"{sum(counts.values())} ({causes})" if causes else "0"


def result(target: TargetOutcome) -> str:
    """Return the verb of the sentence on the target, and what it is about."""
    match target.code:
        case 0:
            return "equals the source"
        case 1:
            return "differs from the source"
        case Unavailable.exit_code:
            return "is incomplete"
        case _:
            return "failed"


def difference_text(difference: dict[str, Any]) -> str:
    place = f"{difference['table']}/{difference['partition']}" if difference.get("partition") else difference["table"]
    sides = f"source {difference.get('source')}, target {difference.get('target')}"
    return f"{place}: {difference['kind']} {difference.get('what') or ''}: {sides}"
