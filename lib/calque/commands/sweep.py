"""The command `calque sweep`, which removes files and records that nothing needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared, targets_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calque.config import Config
    from calque.control.sweep_record import SweepRecord
    from calque.engine.sweep.evidence import Neighbour
    from calque.engine.sweep.retention import DeletedRows
    from calque.engine.sweep.sweep import SweepResult, Unsent
    from calque.errors import CalqueError
    from calque.extension import App
    from calque.wiring.source import SourceWiring
    from calque.wiring.wiring import Wiring

HELD = 75
"""The exit code when not all could be done: an operator has to confirm, or there is a thing that calque can't deal
with."""


@click.command(
    "sweep",
    epilog=examples(
        "calque sweep", "calque sweep --target dr --dry-run", "calque sweep --unknown", "calque sweep --take-stock"
    ),
)
@targets_option
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@click.option("--unknown", is_flag=True, help="Remove what has neither a record nor an owner, too.")
@click.option("--yes", is_flag=True, help="Do so however much it is.")
@click.option(
    "--take-stock",
    is_flag=True,
    help="Record what ledger and history name as replaced or dropped by versions before claims; remove nothing.",
)
@shared
@click.pass_obj
def command(
    settings: CommandSettings, targets: Sequence[str], dry_run: bool, unknown: bool, yes: bool, take_stock: bool
) -> int:
    """Remove what nothing needs any more.

    Directories that records in the ledger name, past their grace period; what a death left before anybody saw it;
    unfinished copies; and journal spans past their retention. What lies in a warehouse with neither a record nor an
    owner is printed, and stays. Run it at intervals, also beside `calque run`, which waits for none of it.
    """
    if yes and not unknown:
        raise click.UsageError("--yes goes with --unknown")
    if take_stock and (dry_run or unknown):
        raise click.UsageError("--take-stock removes nothing: say it alone")
    config = settings.load()
    names = config.select(targets)
    if take_stock:
        return stock(settings, config, names)
    return run(settings, config, names, SweepOptions(dry_run, unknown, yes))


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of a sweep on the command line: to change nothing, to take unknown directories too, and to take them
    however many they are."""

    dry: bool = False
    unknown: bool = False
    confirmed: bool = False


BY_RECORD = SweepOptions()
"""The options of a sweep that removes what records name, and nothing else."""


def run(settings: CommandSettings, config: Config, targets: Sequence[str], options: SweepOptions) -> int:
    """Sweep the targets, print what was done, and return the exit code. A target that can't be swept does not keep
    others from it; the exit code is then that of its error."""
    from calque.commands.output import print_json
    from calque.errors import Refused, Unavailable, print_error

    wiring = settings.app.wiring(config)
    results: dict[str, SweepResult] = {}
    failures: list[CalqueError] = []
    for name in targets:
        try:
            results[name] = sweep_one(wiring, name, settings.app, options)
        except (Refused, Unavailable) as error:
            failures.append(error)
            if len(targets) > 1:
                print_error(f"{name}: {error.what}", error.why, error.todo)
    deleted_rows = {}
    # Who may not remove anything at a target does not let go of its events either.
    if not options.dry and not any(isinstance(failure, Refused) for failure in failures):
        deleted_rows = {
            name: forget_of_source(wiring, name, source, settings.app) for name, source in wiring.sources.items()
        }
    if failures and len(targets) == 1:
        raise failures[0]
    if settings.json:
        documents = [document(wiring, name, result, deleted_rows) for name, result in results.items()]
        print_json(documents[0] if len(targets) == 1 else documents)
    else:
        print_swept(results, deleted_rows, options)
    if failures:
        return failures[0].exit_code
    return HELD if any(result.held or result.troubles for result in results.values()) else 0


def sweep_one(wiring: Wiring, name: str, app: App, options: SweepOptions = BY_RECORD) -> SweepResult:
    from calque.commands.output import bar
    from calque.control.epoch_holds import held_since
    from calque.control.identity import require_for_removal
    from calque.control.sweep_record import SweepRecord
    from calque.engine.identity.identity import spellings_of
    from calque.engine.sides.clocks import believed_now_at
    from calque.engine.sweep.sweep import SweepTerms, sweep_target

    target = wiring.target(name)
    record = last_sweep(wiring, name)
    with wiring.folder.lock(target.places.sweep_lock, target.places.sweep_record), bar(f"sweep {name}") as progress:
        fence = target.deputy()
        side = target.side_behind(fence)
        identity = require_for_removal(wiring, name, side)
        # Also where nothing is to be removed: what this state folder says of the target may be out of date.
        fence.permit()
        now = believed_now_at(side)

        def keep(before: int) -> None:
            for kind in app.retention():
                kind.before_epochs(target, before, now)

        terms = SweepTerms(
            noted=record.noted,
            neighbours=neighbours(wiring, name),
            living_writer=target.living_writer(),
            held_ns=held_since(wiring.control, name, now),
            unsent=unsent(wiring, name, now, app),
            keep=keep,
            unknown=options.unknown,
            confirmed=options.confirmed,
            aliases=spellings_of(identity, side.policy.warehouse),
            dry=options.dry,
            tell=progress,
        )
        result = sweep_target(side, target.source.side().journal, now, terms)
        if not options.dry:
            wiring.control.put(target.places.sweep_record, SweepRecord.of(result, now).as_json())
    return result


def stock(settings: CommandSettings, config: Config, targets: Sequence[str]) -> int:
    """Record what versions before claims left at the targets. Nothing is removed."""
    from calque.commands.output import print_json, print_line
    from calque.engine.sweep.stock import take_stock

    wiring = settings.app.wiring(config)
    counts = {}
    for name in targets:
        target = wiring.target(name)
        with wiring.folder.lock(target.places.sweep_lock, target.places.sweep_record):
            counts[name] = take_stock(target.side_behind(target.deputy()))
    if settings.json:
        documents = [{"target": name, "recorded": count} for name, count in counts.items()]
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for name, count in counts.items():
            print_line(
                f"{name}: directories of before that are recorded: {count}. `calque sweep` removes them after grace"
            )
    return 0


def unsent(wiring: Wiring, name: str, now_ns: int, app: App) -> Unsent | None:
    """Return the epochs of the target that a channel of notices has still to tell of; None where no plugin reads its
    epochs."""
    from calque.engine.sweep.sweep import Unsent

    sent = [epoch for kind in app.retention() if (epoch := kind.sent_epoch(wiring, name)) is not None]
    if not sent:
        return None
    retention = wiring.target(name).source.plug.journal.retention
    return Unsent(min(sent), now_ns - int(retention * 1e9))


def last_sweep(wiring: Wiring, name: str) -> SweepRecord:
    """Return the record of the target's last sweep; an empty one before the first."""
    from calque.control.sweep_record import SweepRecord

    return SweepRecord.of_json(wiring.control.read(wiring.target(name).places.sweep_record))


def neighbours(wiring: Wiring, name: str) -> list[Neighbour]:
    """Return what else the deployment may have in the target's metastore or below its warehouse: other targets, and
    databases that dumps are loaded into."""
    from calque.control.identity import ledgers_of_deployment
    from calque.engine.sweep.evidence import Neighbour

    targets = wiring.config.targets
    return [
        Neighbour(
            named.ledger,
            targets[named.name].admission() if named.name in targets else None,
            is_swept_along=named.name.startswith(f"{name}/"),
        )
        for named in ledgers_of_deployment(wiring, name)
    ]


def forget_of_source(wiring: Wiring, name: str, source: SourceWiring, app: App) -> DeletedRows:
    from calque.control.believed_time import with_believed_clock
    from calque.engine.sweep.retention import Limits, let_go
    from calque.streams.beginning import beginning_of

    side = with_believed_clock(wiring, name, source.side())
    keys, retention = source.plug.keys, source.plug.journal.retention
    ledgers = [wiring.ledger(target) for target in wiring.config.targets_of(name)]

    def before() -> None:
        begin = beginning_of(wiring, name).recorded() or 0
        for kind in app.retention():
            kind.before_events(source, side, begin)

    return let_go(side, ledgers, retention, Limits(keys.pin_bytes, keys.pin_age), before)


def document(
    wiring: Wiring, name: str, result: SweepResult, deleted_rows: Mapping[str, DeletedRows]
) -> Mapping[str, object]:
    source = wiring.target(name).source.plug.name
    return {
        "target": name,
        "removed": result.removed,
        "kept": result.kept,
        "unknown": result.unknown,
        "held": result.held,
        "troubles": result.troubles,
        "files": sum(item.files for item in result.removed),
        "bytes": sum(item.bytes for item in result.removed),
        "records": result.records,
        "epochs": result.epochs,
        "journal": deleted_rows.get(source),
    }


def print_swept(
    results: Mapping[str, SweepResult], deleted_rows: Mapping[str, DeletedRows], options: SweepOptions
) -> None:
    from calque.commands.output import counted, print_line

    done = "would remove" if options.dry else "removed"
    for name, result in results.items():
        for item in result.removed:
            print_line(
                f"{name}: {done} {item.place} ({item.reason}; {counted(item.files, 'file')}, {item.bytes} bytes)"
            )
        for kept in result.kept:
            print_line(f"{name}: kept {kept.place}: {kept.reason}")
        for trouble in result.troubles:
            print_line(f"{name}: left {trouble.place}: {trouble.reason}")
        for unknown in result.unknown:
            content = f"{counted(unknown.files, 'file')}, {unknown.bytes} bytes"
            print_line(f"{name}: unknown {unknown.place}: {unknown.reason} ({content})")
        if result.held:
            print_line(
                f"{name}: {len(result.held)} unknown directories are suspiciously many, and stay. Look at them, then "
                "say `calque sweep --unknown --yes`"
            )
        files, size = sum(item.files for item in result.removed), sum(item.bytes for item in result.removed)
        print_line(
            f"{name}: {done} {len(result.removed)} with {counted(files, 'file')} and {size} bytes; "
            f"{len(result.kept)} kept, {len(result.unknown)} unknown, {result.records} wait for their grace, "
            f"{counted(result.epochs, 'epoch')} forgotten"
        )
    rows = sum(deleted_rows.values(), start_rows())
    print_line(f"journal: {counted(rows.events, 'event')} and {counted(rows.evidence, 'listing')} forgotten")


def start_rows() -> DeletedRows:
    from calque.engine.sweep.retention import DeletedRows

    return DeletedRows()
