"""Groups of commands that answer a misspelt name with the nearest one."""

from __future__ import annotations

from typing import Any

import click

from calque.errors import nearest


class Commands(click.Group):
    """Lists its commands in the order they were added."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"invoke_without_command": True, **options})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise click.UsageError(f'There is no command "{name}". {nearest(name, self.commands)}', ctx)


def need_command(context: click.Context) -> None:
    """What a group does by itself: refuse to do nothing."""
    if context.invoked_subcommand is None and isinstance(context.command, Commands):
        raise click.UsageError(f"A command is missing. There are {', '.join(context.command.commands)}", context)
