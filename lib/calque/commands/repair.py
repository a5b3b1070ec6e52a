"""The command `calque repair`, which compares targets with the source and has the tables that differ read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, data_option, examples, shared, tables_option, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config
    from calque.core.images.compare import Difference
    from calque.engine.verify.report import Verification
    from calque.wiring.wiring import Wiring

DONE, NOT_ALL = 0, 75


@click.command(
    "repair", epilog=examples("calque repair --target dr", "calque repair --target dr --tables sales.x --data checksum")
)
@targets_option
@tables_option
@data_option
@shared
@click.pass_obj
def command(settings: CommandSettings, targets: Sequence[str], tables: Sequence[str], data: str) -> int:
    """Make differences between targets and the source go away.

    Takes the same selection as `calque verify`, compares, and has what differs read again: by the `calque run` that
    runs, or by the next. Exit 75 when a difference is left that this does not mend.
    """
    config = settings.load()
    return run(settings, config, config.select(targets), tables, data)


def run(settings: CommandSettings, config: Config, targets: Sequence[str], tables: Sequence[str], data: str) -> int:
    """Compare the targets, and leave the request that what differs is read again. Return the exit code: 75 where a
    difference is left that this does not mend, or an object was not compared. `data` is "none", "size" or "checksum";
    no `tables` stands for all."""
    from calque.commands.output import print_json
    from calque.commands.verify import verified
    from calque.control.verification import ask_repair

    wiring = settings.app.wiring(config)
    documents, complete = [], True
    for name in targets:
        verification = verified(wiring, name, tables, data, settings.app)
        document, remaining = ask_repair(wiring, verification)
        complete = complete and not remaining and not verification.set_aside
        documents.append(document)
        if not settings.json:
            show(wiring, name, document["tables"], remaining, verification)
    if settings.json:
        print_json(documents[0] if len(documents) == 1 else documents)
    return DONE if complete else NOT_ALL


def left_because(difference: Difference) -> str:
    """Return why a difference is left, and what to do about it."""
    from calque.core.images.compare import DifferenceKind

    foreign = difference.kind is DifferenceKind.FOREIGN
    return f"{difference.what}; take it over with `calque adopt`" if foreign else difference.what


def show(
    wiring: Wiring,
    target: str,
    tables_to_read: Sequence[str],
    remaining: Sequence[Difference],
    verification: Verification,
) -> None:
    """Print for people what is read again, and what is left."""
    from calque.commands.output import print_line
    from calque.commands.verify import summary
    from calque.control.status_records import is_running

    print_line(summary(verification))
    if tables_to_read:
        moment = "now" if is_running(wiring, target) else "as soon as `calque run` runs"
        print_line(f"{target}: {', '.join(tables_to_read)}: read again {moment}")
    for difference in remaining:
        print_line(
            f"{target}: {difference.table} is left as it is: {difference.kind.value}, {left_because(difference)}"
        )
    for skipped in verification.set_aside:
        print_line(f"{target}: {skipped.table} was not compared: {skipped.reason}")
