"""The command `calque identity`, which shows the metastores and directories that a deployment is of, and accepts
others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import Commands, CommandSettings, examples, need_command, shared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calque.config import Config

HEADINGS = ("is", "name", "remembered", "answers", "problem")


@click.group(
    "identity",
    cls=Commands,
    epilog=examples("calque identity show", "calque identity accept --target dr 27663c1e-8f90-42e8-b744-4ba7de0354a4"),
)
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """Show which metastores the deployment is of, or accept others."""
    need_command(context)


@command.command("show", epilog=examples("calque identity show", "calque identity show --json"))
@shared
@click.pass_obj
def show_command(settings: CommandSettings) -> int:
    """Show what the deployment remembers, and what answers now.

    Each metastore has an id of its own, which stays when its address changes. A deployment remembers the ids of its
    source and of its targets, and the directories that it writes below: by a mark in each, so that another spelling of
    one is no other directory.
    """
    return show(settings, settings.load())


@command.command(
    "accept",
    epilog=examples(
        "calque identity accept --source 48a9339b-db28-426c-9f6a-53bc4cf9143c",
        "calque identity accept --target dr 27663c1e-8f90-42e8-b744-4ba7de0354a4",
    ),
)
@click.option("--source", "source_id", metavar="ID", help="The source's metastore that answers with this id.")
@click.option("--target", nargs=2, metavar="NAME ID", help="A target, and the id with which its metastore answers.")
@shared
@click.pass_obj
def accept_command(settings: CommandSettings, source_id: str | None, target: tuple[str, str] | None) -> int:
    """Accept another metastore, or one that was restored.

    The id has to be the one that answers. A source that is accepted lets drops go that waited because its log went
    back. All tables of a target that is another one, or lost its newest state, are looked at again.
    """
    if (source_id is None) == (target is None):
        raise click.UsageError("Either --source or --target is needed")
    config = settings.load()
    if target is not None:
        config.select((target[0],))
        return accept_target(settings, config, *target)
    return accept_source(settings, config, str(source_id))


def show(settings: CommandSettings, config: Config) -> int:
    from calque.commands.output import print_json, print_line, print_table
    from calque.control.identity import compared

    document = compared(settings.app.wiring(config))
    if settings.json:
        print_json(document)
        return 0
    rows = [("source", name, *cells(one)) for name, one in document["sources"].items()]
    rows += [("target", name, *cells(one)) for name, one in document["targets"].items()]
    print_table(HEADINGS, rows)
    for name, one in document["targets"].items():
        for directory in one["directories"] or ():
            print_line(f"{name}: {directory['mark']} is {', '.join(directory['spellings'])}")
    return 0


def cells(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["id"] or "-", one["answers"] or "-", one["problem"] or ""


def accept_target(settings: CommandSettings, config: Config, name: str, target_id: str) -> int:
    from calque.control import identity

    has_changed = identity.accept_target(settings.app.wiring(config), name, target_id)
    return tell(settings, {"source": None, "target": name, "id": target_id, "changed": has_changed})


def accept_source(settings: CommandSettings, config: Config, source_id: str) -> int:
    from calque.control import identity

    accepted = identity.accept_source(settings.app.wiring(config), source_id)
    document = {"source": accepted.name, "target": None, "id": source_id, "changed": accepted.has_changed}
    return tell(settings, document)


def tell(settings: CommandSettings, document: Mapping[str, Any]) -> int:
    from calque.commands.output import print_json, print_line

    if settings.json:
        print_json(document)
    else:
        what = f"target {document['target']}" if document["target"] else f"source {document['source']}"
        print_line(f"{what}: {document['id']} is accepted" if document["changed"] else f"{what}: nothing had to change")
    return 0
