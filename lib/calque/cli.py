"""The command line: `calque COMMAND`. Every way out of a command becomes one line on stderr and an exit code."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from click.shell_completion import shell_complete

from calque.app import APP
from calque.commands import (
    adopt,
    bootstrap,
    check,
    epochs,
    history,
    identity,
    init,
    journal,
    monitoring,
    pause,
    plan,
    quarantine,
    release_drops,
    reload,
    repair,
    replay,
    run,
    sql,
    status,
    sweep,
    verify,
    wait,
)
from calque.commands.options import Commands, CommandSettings, examples, need_command, shared
from calque.commands.output import PRINTED, print_json
from calque.demo.command import command as demo
from calque.errors import Broken, CalqueError, Interrupted, Unavailable, WrongUsage, nearest
from calque.logs.setup import report_error

INTERRUPTED = Interrupted("Interrupted", "Not all was done", "Run it again")
COMPLETE = "_CALQUE_COMPLETE"
"""The variable that shells set to ask how a line can go on, and that a user sets to get the script for it."""


class StdoutLost(OSError):
    """The error of standard output that takes nothing more."""


class Stdout(io.TextIOWrapper):
    """Standard output whose failures are told apart from those of other files. A reader that went away stays a
    `BrokenPipeError`."""

    def write(self, text: str) -> int:
        with _told_apart():
            return super().write(text)

    def flush(self) -> None:
        with _told_apart():
            super().flush()


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutLost(error.errno, error.strerror) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code. `arguments` are the process's own where None is given."""
    settings = CommandSettings(app=APP)
    if arguments is None and (instruction := os.environ.get(COMPLETE)):
        logging.disable()
        return shell_complete(commands, {"obj": settings}, "calque", COMPLETE, instruction)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller has closed it, and wants nothing printed
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout is sys.__stdout__:
        output = sys.stdout
        sys.stdout = Stdout(output.buffer, output.encoding, output.errors, line_buffering=output.line_buffering)
    given = list(sys.argv[1:] if arguments is None else arguments)
    PRINTED.document = False
    with _noted_interrupts() as interrupted:
        return _run(given, settings, interrupted)


def _run(given: list[str], settings: CommandSettings, interrupted: threading.Event) -> int:
    is_json = "--json" in given
    try:
        return _invoke(given, settings)
    except click.ClickException as error:
        return _reported(WrongUsage(*_usage(error)), is_json=is_json)
    except BrokenPipeError:
        _give_up_stdout()
        return Unavailable.exit_code
    except StdoutLost as error:
        _give_up_stdout()
        why = f"What it leads to says: {error.strerror}"
        return _reported(Unavailable("Standard output can't be written", why, "Free space there, and run it again"))
    except KeyboardInterrupt:
        return _reported(INTERRUPTED, is_json=is_json)
    except CalqueError as error:
        return _reported(error, error if settings.debug else None, is_json=is_json)
    except Exception as error:  # noqa: BLE001 - the process ends here: no caller can tell the user
        if interrupted.is_set():  # a module that was just being imported made another error of the interrupt
            return _reported(INTERRUPTED, is_json=is_json)
        todo = "Report the traceback above" if settings.debug else "Run it again with --debug, and report the traceback"
        defect = Broken(f"{type(error).__name__}: {error}".rstrip(": "), "This is a defect of calque", todo)
        return _reported(defect, error if settings.debug else None, is_json=is_json)


@contextmanager
def _noted_interrupts() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets before it raises `KeyboardInterrupt`, within the block, in the main thread. Where
    Python can't raise it, as in a finalizer, Ctrl-C comes once more."""
    come, told_before = threading.Event(), sys.unraisablehook

    def interrupt(_number: int, _frame: object) -> None:
        come.set()
        raise KeyboardInterrupt

    def again(args: sys.UnraisableHookArgs) -> None:
        if args.exc_type is KeyboardInterrupt:
            interrupt_main()
        else:
            told_before(args)

    is_noted = threading.current_thread() is threading.main_thread()
    is_noted = is_noted and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_noted:
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = again
    try:
        yield come
    finally:
        if is_noted and signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if sys.unraisablehook is again:
            sys.unraisablehook = told_before


def _reported(error: CalqueError, cause: BaseException | None = None, *, is_json: bool = False) -> int:
    """Report the error on stderr, and with `is_json` also as the one document on stdout, unless the command has printed
    its own. Return the exit code."""
    report_error(error, cause)
    if is_json and not PRINTED.document:
        print_json(error.document())
    return error.exit_code


def _give_up_stdout() -> None:
    """Let the rest of what was printed go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples("calque demo", "calque init", "calque check", "calque run --until head", "calque status --json"),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *given: _version(*given),
    help="Print the version.",
)
@shared
@click.pass_context
def commands(context: click.Context) -> None:
    """Replicate Hive-metastore warehouses, without ever showing a state that the source was never in.

    \b
    Exit codes: 0 done, 1 differences found, 64 usage, 65 refused, 70 broken,
    75 unavailable or not all of it could be done, 130 interrupted.
    """
    need_command(context)


for _command in (
    demo,
    init.command,
    check.command,
    run.command,
    status.command,
    plan.command,
    bootstrap.command,
    replay.command,
    pause.pause_command,
    pause.resume_command,
    reload.command,
    quarantine.command,
    release_drops.command,
    adopt.command,
    verify.command,
    repair.command,
    epochs.command,
    history.command,
    journal.command,
    identity.command,
    wait.command,
    *APP.each(lambda plugin: plugin.commands()),
    sweep.command,
    sql.command,
    monitoring.command,
):
    commands.add_command(_command)


def _invoke(arguments: list[str], settings: CommandSettings) -> int:
    try:
        with commands.make_context("calque", arguments, obj=settings) as context:
            code = commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as problem:
        return problem.exit_code
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> tuple[str, str, str]:
    context = error.ctx if isinstance(error, click.UsageError) else None
    todo = f"See '{context.command_path if context else 'calque'} --help'"
    match error:
        case click.NoSuchOption():
            option_names = [name for option in context.command.params for name in option.opts] if context else []
            names = [name for name in [*option_names, "--help"] if name.startswith("-")]
            return f'There is no option "{error.option_name}"', nearest(error.option_name, names), todo
        case click.MissingParameter():
            return f"{_parameter(error)} is missing", "The command needs it", todo
        case click.BadParameter():
            return f"{_parameter(error)}: {error.message}", "", todo
        case click.ClickException():
            return error.message, "", todo


def _parameter(error: click.BadParameter) -> str:
    if isinstance(error.param, click.Argument) and error.ctx is not None:
        context = error.ctx
        arguments = [one.make_metavar(context) for one in context.command.params if isinstance(one, click.Argument)]
        return f"{error.param.make_metavar(context)} of `{context.command_path} {' '.join(arguments)}`"
    return error.param.opts[-1] if error.param else "a value"


def _version(context: click.Context, _parameter: click.Parameter, is_asked_for: bool) -> None:
    if is_asked_for:
        from calque.core.records.state_formats import LEDGER_FORMAT
        from calque.model.state_places import STATE_FORMAT
        from calque.resources import package_versions

        versions = package_versions()
        click.echo(f"calque {versions['version'] or '(not installed)'}")
        click.echo(f"Python {versions['python']}, PySpark {versions['pyspark']}, deltalake {versions['deltalake']}")
        click.echo(f"Java {_java()}")
        click.echo(f"Formats: state folder {STATE_FORMAT}, ledger {LEDGER_FORMAT}")
        context.exit()


def _java() -> str:
    """Return the version of the Java that Spark would run on, as it tells it, and where it is."""
    from subprocess import TimeoutExpired

    from calque.java import java_program, java_version

    program = java_program(os.environ)
    if program is None:
        return "is not on the PATH"
    try:
        return f"{java_version(program) or 'of an unknown version'} ({program})"
    except (OSError, TimeoutExpired) as error:
        return f"does not start ({program}: {error})"


if __name__ == "__main__":
    sys.exit(main())
