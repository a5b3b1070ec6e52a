"""The set-up of a process's log, and the report of the error that ends it."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from typing import Any, Literal

from calque.errors import CalqueError, print_calque_error
from calque.logs.fields import about
from calque.logs.lines import JsonFormatter, TextFormatter

LOG = logging.getLogger("calque")
Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]


def log_to_stderr(form: Format, level: Level) -> None:
    """Log to stderr from now on; a process that logs already goes on as it does. With `form` JSON the log also takes
    what Python would write to stderr by itself: warnings, and errors that nothing caught. Libraries log warnings and
    errors only."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    set_level(level)
    if is_json():
        logging.captureWarnings(True)
        sys.excepthook = lambda kind, error, _: say("An error that nobody caught", error or kind())
        threading.excepthook = lambda args: say("A thread ended", args.exc_value or args.exc_type())
        sys.unraisablehook = lambda args: say(args.err_msg or "An error was ignored", args.exc_value)


def set_level(level: Level) -> None:
    LOG.setLevel(level.upper())


def is_json() -> bool:
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def report_error(error: CalqueError, cause: BaseException | None = None) -> None:
    """Write the error's line to stderr, in the form of the log, and the traceback of the cause where one is given."""
    if is_json():
        LOG.error("%s", error, exc_info=cause, extra=about(exit_code=error.exit_code))
        return
    if cause is not None:
        traceback.print_exception(cause)
    print_calque_error(error)


def say(text: str, error: Any) -> None:
    LOG.error("%s", text, exc_info=error)
