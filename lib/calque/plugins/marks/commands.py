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
    from collections.abc import Callable, Sequence

    from calque.model.names import TableName
    from calque.plugins.marks.api.sets import DoneSets
    from calque.plugins.marks.core import Verdict

Pair = tuple[str, str]


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
    from calque.plugins.marks.api.rows import set_row

    sets, name = opened(settings), named(table)
    mark = sets.mark(name, values_of(pairs))
    if settings.json:
        print_json(set_row(mark, name))
    else:
        print_line(f"{mark.condition} of {name} is marked behind event {mark.event_id}")
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
    from calque.plugins.marks.api.rows import SET_FIELDS, set_row

    sets = opened(settings).marks(named(table) if table is not None else None, target)
    rows = [set_row(done.mark, done.table) for done in sets]
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
    from calque.plugins.marks.api.sets import outside, undone
    from calque.plugins.marks.core import NotDone, OutsidePolicy

    sets, name, values = opened(settings), named(table), values_of(pairs)
    partition = sets.question(name, values, target)
    verdict = sets.judge(target).verdict(name, partition)
    tell(settings, name, partition, target, verdict)
    match verdict:
        case NotDone():
            raise undone(name, partition, target, verdict)
        case OutsidePolicy():
            raise outside(verdict, target)
    return 0


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
    sets, name, values = opened(settings), named(table), values_of(pairs)
    verdict = sets.wait(name, values, target, timeout)
    tell(settings, name, sets.question(name, values, target), target, verdict)
    return 0


def opened(settings: CommandSettings) -> DoneSets:
    from calque.plugins.marks.api.sets import DoneSets

    return DoneSets(settings.app.wiring(settings.load()))


def named(table: str) -> TableName:
    from calque.core.policy.patterns import named_table

    return named_table(table)


def values_of(pairs: Sequence[Pair]) -> dict[str, str]:
    """Return the pairs as a dict. Raises a usage error where a key stands twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise click.UsageError("A key is given twice. Each has one value")
    return values


def tell(settings: CommandSettings, name: TableName, partition: Any, target: str | None, verdict: Verdict) -> None:
    """Print the verdict: as JSON, or for people; for them nothing where the set is not done."""
    from calque.commands.output import print_json, print_line
    from calque.plugins.marks.api.rows import verdict_row
    from calque.plugins.marks.core import Done
    from calque.plugins.marks.model import condition_of

    condition = condition_of(partition)
    if settings.json:
        print_json(verdict_row(name, condition, target, verdict))
    elif isinstance(verdict, Done):
        place = f" at {target}, which shows event {verdict.shows}" if target is not None else ""
        only = ": definitions only, the rows are the source's" if verdict.definitions_only else ""
        print_line(f"{condition} of {verdict.table} is done{place}{only}")
