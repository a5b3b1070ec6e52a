"""The options, kinds of values and help texts that several commands share, and the class of groups of commands."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from calque.control.epoch_rows import EpochReference
from calque.errors import CalqueError, Refused, nearest
from calque.extension import App

if TYPE_CHECKING:
    from calque.config import Config
    from calque.wiring.wiring import Wiring

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_CONFIG, CONFIG_VARIABLE = "calque.toml", "CALQUE_CONFIG"
EVENT_ID = click.IntRange(min=0)
EVENT_ID_TEXT = re.compile(r"[0-9]+")
AMOUNTS = ("none", "size", "checksum")
FORMATS = ("delta", "kafka")


@dataclass(slots=True)
class CommandSettings:
    """The shared options. They may stand before or after the command's name, and the later one wins. `app` has the
    plugins."""

    config: str = field(default_factory=lambda: os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
    json: bool = False
    debug: bool = False
    app: App = field(default_factory=App)

    def load(self) -> Config:
        """Return the configuration, checked whole, with what the state folder adds. Raises `Refused` for an invalid
        one, and for one that has no source."""
        config = self.load_any()
        config.require_source()
        return config

    def load_any(self) -> Config:
        """Return the configuration with what the state folder adds; it may be one that replicates nothing."""
        return self.app.load(self.config)

    def answer(self, question: str, **arguments: Any) -> Any:
        """Return the answer to the question (`App.questions`) as a JSON value: that of a process that runs under this
        configuration, else from the state folder and the servers. Raises what the question raises."""
        from calque.control.asking import Declined, ask

        try:
            return ask(self.config, question, arguments)
        except Declined:
            return self.answer_alone(question, arguments)

    def answer_for_one(self, question: str, targets: Sequence[str], **arguments: Any) -> Any:
        """Return the answer about the target that is named, or the only one. Without a running process it is known
        before the state folder is looked at that several targets are there and none is named."""
        from calque.control.asking import Declined, ask, several_targets

        arguments = {"targets": targets, **arguments}
        try:
            return ask(self.config, question, arguments)
        except Declined:
            names = self.app.read(self.config).targets
            if not targets and len(names) > 1:
                raise several_targets(names) from None
            return self.answer_alone(question, arguments)

    def answer_alone(self, question: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer from the state folder and the servers, without a running process."""
        return self.app.questions()[question](self.app.wiring(self.load_any()), arguments)


def duration(text: str) -> float:
    """Return the seconds that the text says. As the other kinds of values below, it raises a usage error for any other
    text."""
    from calque.config.units import seconds

    try:
        return seconds(text)
    except Refused as refused:
        raise click.BadParameter(str(refused)) from None


def head_or_event(text: str) -> str | int:
    if text == "head":
        return text
    if not EVENT_ID_TEXT.fullmatch(text):
        raise click.BadParameter(f'"{text}" is neither "head" nor an event id')
    return int(text)


def pattern(text: str) -> str:
    from calque.core.policy.patterns import parse_pattern

    try:
        parse_pattern(text)
    except Refused as refused:
        raise click.BadParameter(str(refused)) from None
    return text


def address(text: str) -> str:
    from calque.config.checks import endpoint

    try:
        return str(endpoint(text)) if text else ""
    except Refused as refused:
        raise click.BadParameter(str(refused)) from None


def epoch_reference(text: str) -> EpochReference:
    number = text.removeprefix("@")
    if not EVENT_ID_TEXT.fullmatch(number):
        raise click.BadParameter(f'"{text}" is neither an epoch\'s number nor @ and an event id')
    return EpochReference(int(number), is_event=text != number)


def amount_of_data(text: str) -> str:
    return choice(text, AMOUNTS)


def journal_format(text: str) -> str:
    return choice(text, FORMATS)


def choice(text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        raise click.BadParameter(f'"{text}" is no choice. {nearest(text, choices)}')
    return text


Words = Callable[[click.Context, str], Iterable[str]]
Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def quietly(words: Words) -> Completion:
    """Return a function for `shell_complete` of click that returns those of the words that go on as the line does; none
    where an error ends the look for them."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        try:
            return [word for word in words(context, incomplete) if word.startswith(incomplete)]
        except (CalqueError, OSError):
            return []

    return complete


def _target_words(context: click.Context, _incomplete: str) -> Iterable[str]:
    settings = context.ensure_object(CommandSettings)
    return settings.app.read(settings.config).targets


def _table_words(context: click.Context, _incomplete: str) -> Iterable[str]:
    from calque.control.known_names import known_tables

    return known_tables(*_world(context))


def _epoch_words(context: click.Context, incomplete: str) -> Iterable[str]:
    """Return the numbers of a target's epochs, or behind an `@` their event ids; none where it is not clear which
    target is meant."""
    from calque.control.known_names import known_epochs, known_events

    wiring, targets = _world(context)
    if len(targets) != 1:
        return ()
    if incomplete.startswith("@"):
        return [f"@{event_id}" for event_id in known_events(wiring, targets)]
    return known_epochs(wiring, targets[0], incomplete)


def _event_words(context: click.Context, _incomplete: str) -> Iterable[str]:
    from calque.control.known_names import known_events

    return map(str, known_events(*_world(context)))


def _world(context: click.Context) -> tuple[Wiring, Sequence[str]]:
    """Return the wiring, and the targets on the line, or all targets where it names none. Raises `Refused`."""
    settings = context.ensure_object(CommandSettings)
    config = settings.app.read(settings.config)
    named = context.params.get("targets") or context.params.get("target") or ()
    return settings.app.wiring(config), config.select((named,) if isinstance(named, str) else named)


complete_targets, complete_tables = quietly(_target_words), quietly(_table_words)
complete_epochs, complete_event_ids = quietly(_epoch_words), quietly(_event_words)


def shared(command: F) -> F:
    """Add `-c`, `--json` and `--debug` to a command. Their values are kept in `CommandSettings`."""
    options = (
        click.option(
            "-c",
            "--config",
            metavar="FILE",
            help="The configuration.  [default: $CALQUE_CONFIG, or calque.toml]",
            **_kept,
        ),
        click.option("--json", is_flag=True, help="Print one JSON document and nothing else.", **_kept),
        click.option("--debug", is_flag=True, help="Show the traceback of an error.", **_kept),
    )
    for option in reversed(options):
        command = option(command)
    return command


def targets_option(command: F) -> F:
    text = "Only this target; may be repeated."
    return click.option(
        "--target", "targets", metavar="NAME", multiple=True, shell_complete=complete_targets, help=text
    )(command)


def serve_option(command: F) -> F:
    text = "Serve health and metrics there.  [default: nowhere]"
    return click.option("--serve", metavar="HOST:PORT", type=address, default="", help=text)(command)


def one_target_option(command: F) -> F:
    text = "The target; needed where there are several."
    settings: dict[str, Any] = {"callback": _at_most_one, "shell_complete": complete_targets, "help": text}
    return click.option("--target", "targets", metavar="NAME", multiple=True, **settings)(command)


def target_option(command: F) -> F:
    settings: dict[str, Any] = {"callback": _exactly_one, "shell_complete": complete_targets, "help": "The target."}
    return click.option("--target", metavar="NAME", multiple=True, required=True, **settings)(command)


def tables_option(command: F) -> F:
    text = "Only tables, named as at the source, that match: a glob or /regular expression/; may be repeated."
    settings: dict[str, Any] = {"type": pattern, "shell_complete": complete_tables, "help": text}
    return click.option("--tables", metavar="PATTERN", multiple=True, **settings)(command)


def data_option(command: F) -> F:
    text = "What of files is compared."
    metavar = "|".join(AMOUNTS)
    return click.option("--data", metavar=metavar, type=amount_of_data, default="size", show_default=True, help=text)(
        command
    )


def examples(*lines: str) -> str:
    """Return the epilog of a help text, with a line for each example."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _at_most_one(_context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> Sequence[str]:
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times, and one target is meant", param=parameter)
    return values


def _exactly_one(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> str:
    return _at_most_one(context, parameter, values)[0]


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    settings = context.find_root().ensure_object(CommandSettings)
    if value and parameter.name:
        setattr(settings, parameter.name, value)


_kept: dict[str, Any] = {"callback": _keep, "expose_value": False, "is_eager": True}


class Commands(click.Group):
    """A group of commands. It lists them in the order in which they were added, and answers a misspelt name with the
    nearest one."""

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
    """Raise a usage error where a group is called without a command."""
    if context.invoked_subcommand is None and isinstance(context.command, Commands):
        raise click.UsageError(f"A command is missing. There are {', '.join(context.command.commands)}", context)
