"""The commands `calque journal move` and `calque journal create`, which change where captured events are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared

if TYPE_CHECKING:
    from calque.config import Config
    from calque.engine.capture.journal_copy import CopiedJournal, JournalOwner, JournalStore
    from calque.wiring.journal_location import JournalAddress
    from calque.wiring.source import SourceWiring
    from calque.wiring.wiring import Wiring

REPORT_SECONDS = 2.0


@click.command("move", epilog=examples("calque journal move", "calque journal move --json"))
@shared
@click.pass_obj
def move_command(settings: CommandSettings) -> int:
    """Take the journal along to where [journal] says.

    Copies all captured events and their evidence from where they are, so that targets go on as they were. Stop `calque
    run` first. A move that was interrupted goes on when it is said again; what it copied from is left as it is.
    """
    return run(settings, settings.load())


@click.command("create", epilog=examples("calque journal create", "calque journal create --json"))
@shared
@click.pass_obj
def create_command(settings: CommandSettings) -> int:
    """Make the journal's topics that are missing, if [journal] names Kafka.

    Where it names a schema registry, the schema of events is registered there."""
    return create(settings, settings.load())


def run(settings: CommandSettings, config: Config) -> int:
    from calque.commands.output import counted, print_json, print_line
    from calque.control.process_locks import Roles, roles
    from calque.errors import Refused

    wiring = settings.app.wiring(config)
    source_name = wiring.only_source().plug.name
    with Roles(wiring.state) as held_roles:
        held_roles.take(roles(config, [source_name], config.targets_of(source_name)))
        wiring = wiring.behind(held_roles)
        source = wiring.only_source()
        location = source.journal_location
        to, current = location.configured(), location.recorded()
        if current is None:
            raise Refused("There is no journal to move yet", "Nothing was captured", f"Start `calque run`, into {to}")
        copy = None if current.same(to) else copied(wiring, source, current, to, quiet=settings.json)
        if copy is not None:
            location.move(to, copy.last)
    if settings.json:
        print_json({"from": str(current), "to": str(to), "moved": copy})
    elif copy is None:
        print_line(f"Nothing to do: the journal is in {current}.")
    else:
        print_line(
            f"The journal is in {to} now. Copied, up to event {copy.last}: {counted(copy.events, 'event')} and "
            f"{counted(copy.listings, 'listing')}. What is in {current} is left there."
        )
    return 0


def copied(
    wiring: Wiring, source: SourceWiring, current: JournalAddress, to: JournalAddress, *, quiet: bool
) -> CopiedJournal:
    import time

    from calque.commands.output import print_line
    from calque.engine.capture.journal_copy import move

    last_report = time.monotonic()

    def tell(reached: int, last: int) -> None:
        nonlocal last_report
        if not quiet and time.monotonic() > last_report + REPORT_SECONDS:
            last_report = time.monotonic()
            print_line(f"Copied up to event {reached} of {last}")

    new = store_of(source, to)
    return move(store_of(source, current), new, owner_of(source, to, new), needed(wiring, source), tell)


def store_of(source: SourceWiring, address: JournalAddress) -> JournalStore:
    from calque.engine.capture.journal_copy import JournalStore

    journal, evidence = source.open_journal(address)
    guard = source.runtime.guard
    return JournalStore(str(address), guard.journal(journal), guard.evidence(evidence))


def owner_of(source: SourceWiring, to: JournalAddress, new: JournalStore) -> JournalOwner:
    """Return whether the journal at `to` is this deployment's own, or may have any writer. No other process writes
    to a Delta table. A topic is this deployment's own where an earlier move left it, and no event was written to it
    since."""
    from calque.engine.capture.journal_copy import JournalOwner

    left_journal = source.journal_location.former()
    if to.format == "delta":
        return JournalOwner.US
    is_own = left_journal is not None and left_journal.place.same(to) and new.journal.last() == left_journal.last
    return JournalOwner.US if is_own else JournalOwner.ANYBODY


def needed(wiring: Wiring, source: SourceWiring) -> int:
    """Return the event up to which every target has all events: a journal has to have those after it."""
    from calque.engine.sides.journal_reads import newest
    from calque.engine.sweep.retention import shown_by_all

    gap = newest(source.gaps())
    targets = wiring.config.targets_of(source.plug.name)
    return min(shown_by_all(wiring.ledger(name), gap) for name in targets)


def create(settings: CommandSettings, config: Config) -> int:
    from calque.commands.output import print_json, print_line
    from calque.errors import Refused

    source = settings.app.wiring(config).only_source()
    address = source.journal_location.configured()
    make = source.runtime.kinds.journal(address.format).make
    if make is None:
        todo = 'Nothing is to be done; or write format = "kafka" below [journal]'
        raise Refused(
            "There are no topics to make", "The journal is a Delta table, which capture makes by itself", todo
        )
    document, lines = make(source.plug, address)
    if settings.json:
        print_json(document)
    else:
        for line in lines:
            print_line(line)
    return 0
