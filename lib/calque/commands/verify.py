"""The command `calque verify`, which compares targets with the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import CommandSettings, data_option, examples, shared, tables_option, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config
    from calque.core.images.compare import ComparedCounts
    from calque.engine.verify.report import Verification
    from calque.extension import App
    from calque.wiring.wiring import Wiring

DIFFERENT, EQUAL, NOT_ALL = 1, 0, 75
ROWS = 200
"""The number of differences of a target that people are shown; `--json` has them all."""
HEADINGS = ("table", "partition", "kind", "what", "source", "target")


@click.command(
    "verify", epilog=examples("calque verify", "calque verify --target dr --tables 'sales.*' --data checksum")
)
@targets_option
@tables_option
@data_option
@shared
@click.pass_obj
def command(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str], data: str) -> int:
    """Compare targets with the source at one event id, both ways.

    Also under load, without false alarms. Exit 1, and a list with the two sides of each, when there are differences;
    75 when nothing differs and not all could be compared.
    """
    config = settings.load()
    return run(settings, config, config.select(targets), tables, data)


def run(settings: CommandSettings, config: Config, targets: Sequence[str], tables: Sequence[str], data: str) -> int:
    """Compare the targets, print the differences, and return the exit code. `data` is "none", "size" or "checksum"; no
    `tables` stands for all."""
    from calque.commands.output import print_json
    from calque.control.verification import document

    wiring = settings.app.wiring(config)
    verifications = [verified(wiring, name, tables, data, settings.app) for name in targets]
    if settings.json:
        documents = [document(wiring, verification) for verification in verifications]
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for verification in verifications:
            show(wiring, verification)
    if any(verification.differences for verification in verifications):
        return DIFFERENT
    return NOT_ALL if any(verification.set_aside for verification in verifications) else EQUAL


def verified(wiring: Wiring, target: str, tables: Sequence[str], data: str, app: App) -> Verification:
    """Compare one target, and return what was found; on a terminal with a bar on stderr."""
    from calque.commands.output import bar
    from calque.control.verification import verification

    with bar(f"verify {target}") as progress:
        return verification(wiring, target, tables, data, progress, app.comparisons())


def show(wiring: Wiring, verification: Verification) -> None:
    """Print the result for people."""
    from calque.commands.output import print_line, print_table
    from calque.control.verification import aside_row, difference_row

    rows = [difference_row(wiring, verification.target, difference) for difference in verification.differences]
    if rows:
        named = [{**row, "table": label(row)} for row in rows[:ROWS]]
        print_table(HEADINGS, [[row[heading] for heading in HEADINGS] for row in named])
    if len(rows) > ROWS:
        print_line(f"and {len(rows) - ROWS} more: --json shows all")
    for skipped in verification.set_aside:
        row = aside_row(wiring, verification.target, skipped)
        shows = "shows nothing" if row["shows"] is None else f"shows event {row['shows']}"
        print_line(f"not compared: {label(row)} ({row['state']}, {shows}): {row['reason']}")
    for table, key, value in verification.notes[:ROWS]:
        print_line(f"note: {table}: {key} = {value} stays as it is")
    print_line(summary(verification))


def label(row: dict[str, Any]) -> str:
    return f"{row['table']} ({row['at_target']})" if "at_target" in row else str(row["table"])


def summary(verification: Verification) -> str:
    equal, skipped_count = not verification.differences, len(verification.set_aside)
    verdict = "equals the source" if equal else f"differs from the source in {len(verification.differences)}"
    places = "" if equal else (" place" if len(verification.differences) == 1 else " places")
    remark = f"; {skipped_count} not compared" if skipped_count else ""
    return (
        f"{verification.target} {verdict}{places} at event {verification.event_id}: "
        f"{amounts(verification.compared)} compared{remark}"
    )


def amounts(counts: ComparedCounts) -> str:
    pairs = (
        (counts.databases, "database"),
        (counts.tables, "table"),
        (counts.partitions, "partition"),
        (counts.files, "file"),
    )
    from calque.commands.output import counted

    return f"{', '.join(counted(number, noun) for number, noun in pairs)} ({counts.bytes} bytes)"
