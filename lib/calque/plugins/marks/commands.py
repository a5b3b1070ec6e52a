"""`calque done`: sets of partitions that are complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import (
    Commands,
    CommandSettings,
    complete_tables,
    complete_targets,
    duration,
    examples,
    need_command,
    shared,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Pair = tuple[str, str]
SET_FIELDS = ("table", "partition", "event_id", "marked_at", "expires_at")
ASK_SECONDS = 20.0
"""Seconds for which a running process is asked to wait for a set, before it is asked again."""


def pair(text: str) -> Pair:
    """Split `KEY=VALUE`. Raises a usage error for a text without a key or a sign."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise click.BadParameter(f'"{text}" is no key with a value. Write e.g. ds=2024-01-01')
    return key.strip(), value


def set_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command the arguments `TABLE KEY=VALUE…`."""
    command = click.argument("pairs", metavar="KEY=VALUE...", type=pair, nargs=-1, required=True)(command)
    return click.argument("table", metavar="TABLE", shell_complete=complete_tables)(command)


def place_option(command: Callable[..., Any]) -> Callable[..., Any]:
    text = "Ask whether it is done at this target.  [default: at the source]"
    return click.option("--target", metavar="NAME", shell_complete=complete_targets, help=text)(command)


@click.group(
    "done",
    cls=Commands,
    epilog=examples(
        "calque done mark sales.orders ds=2024-01-01",
        "calque done wait sales.orders ds=2024-01-01 --target dr --timeout 2h",
        "calque done list",
    ),
)
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """Mark sets of partitions as complete, and look and wait for them.

    A set is all partitions of a table that match some of its partition keys. Tables and keys are named as at the
    source.
    """
    need_command(context)


@command.command(
    "mark",
    epilog=examples(
        "calque done mark sales.orders ds=2024-01-01", "calque done mark sales.orders ds=2024-01-01 region=us --json"
    ),
)
@set_arguments
@shared
@click.pass_obj
def mark_command(settings: CommandSettings, table: str, pairs: Sequence[Pair]) -> int:
    """Say that all partitions that match the keys are complete.

    Say it when the last of them is written: the mark stands behind the newest event of the source's log.
    """
    from calque.commands.output import print_json, print_line

    row = settings.answer("done mark", table=table, values=values_of(pairs))
    if settings.json:
        print_json(row)
    else:
        print_line(f"{row['partition']} of {row['table']} is marked behind event {row['event_id']}")
    return 0


@command.command("list", epilog=examples("calque done list", "calque done list sales.orders --target dr --json"))
@click.argument("table", metavar="TABLE", required=False, shell_complete=complete_tables)
@click.option(
    "--target", metavar="NAME", shell_complete=complete_targets, help="Only those that are done at this target."
)
@shared
@click.pass_obj
def list_command(settings: CommandSettings, table: str | None, target: str | None) -> int:
    """List the sets that were marked and have not expired, oldest first."""
    from calque.commands.output import print_json, print_table

    rows = settings.answer("done list", table=table, target=target)
    if settings.json:
        print_json(rows)
    else:
        print_table([field.replace("_", " ") for field in SET_FIELDS], [list(row.values()) for row in rows])
    return 0


@command.command(
    "check",
    epilog=examples(
        "calque done check sales.orders ds=2024-01-01",
        "calque done check sales.orders ds=2024-01-01 region=us --target dr",
    ),
)
@set_arguments
@place_option
@shared
@click.pass_obj
def check_command(settings: CommandSettings, table: str, pairs: Sequence[Pair], target: str | None) -> int:
    """Is a set done? Exit 0 when it is, 75 with the reason when it is not.

    A set is done, too, when a larger one is that has it: ds=2024-01-01 has ds=2024-01-01 region=us. At a target all of
    it can be read when it is done.
    """
    answer = settings.answer("done check", table=table, values=values_of(pairs), target=target)
    tell(settings, answer)
    return ended(answer)


@command.command(
    "wait",
    epilog=examples(
        "calque done wait sales.orders ds=2024-01-01 --target dr",
        "calque done wait sales.orders ds=2024-01-01 --timeout 2h",
    ),
)
@set_arguments
@place_option
@click.option("--timeout", metavar="S", type=duration, help="Give up after that long.  [default: never]")
@shared
@click.pass_obj
def wait_command(
    settings: CommandSettings, table: str, pairs: Sequence[Pair], target: str | None, timeout: float | None
) -> int:
    """Wait until a set is done, also one that is marked only later.

    Exit 75 on time-out, with the reason why it is not done.
    """
    set_asked = {"table": table, "values": values_of(pairs), "target": target, "timeout": timeout}
    answer = waited(settings, set_asked, timeout)
    tell(settings, answer)
    return ended(answer)


def ended(answer: Mapping[str, Any]) -> int:
    """Return the exit code of a set that is done. Raises the answer's error."""
    from calque.control.asking import error_of

    if answer["error"] is not None:
        raise error_of(answer["error"])
    return 0


def waited(settings: CommandSettings, set_asked: Mapping[str, Any], timeout: float | None) -> Mapping[str, Any]:
    """Return the answer to `done wait`: of a running process, which is asked again and again, else found here."""
    from time import monotonic

    from calque.control.asking import Declined, ask

    deadline = monotonic() + (timeout if timeout is not None else float("inf"))
    try:
        while True:
            left = deadline - monotonic()
            answer: Mapping[str, Any] = ask(
                settings.config, "done wait", {**set_asked, "seconds": max(min(left, ASK_SECONDS), 0.0)}
            )
            if answer["error"] is None or left <= ASK_SECONDS:
                return answer
    except Declined:
        left = deadline - monotonic()
        seconds = None if timeout is None else max(left, 0.0)
        alone: Mapping[str, Any] = settings.answer_alone("done wait", {**set_asked, "seconds": seconds})
        return alone


def values_of(pairs: Sequence[Pair]) -> dict[str, str]:
    """Return the pairs as a dict. Raises a usage error where a key stands twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise click.UsageError("A key is given twice. Each has one value")
    return values


def tell(settings: CommandSettings, answer: Mapping[str, Any]) -> None:
    """Print the answer's verdict: as JSON, or for people; for them nothing where the set is not done."""
    from calque.commands.output import print_json, print_line

    if settings.json and answer["row"] is not None:
        print_json(answer["row"])
    elif answer["said"] and not settings.json:
        print_line(answer["said"])
