"""The entry of the `calque` command: Ctrl-C ends it in order from the first moment on, while modules are imported."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130
"""The exit code of `errors.Interrupted`."""
DOCUMENT = """{
  "error": {
    "code": %d,
    "kind": "interrupted",
    "what": "%s",
    "why": "%s",
    "do": "%s",
    "where": null
  }
}
"""
"""The document of that error (`errors.CalqueError.document`)."""


def main() -> int:
    """Run one command, and return the exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    from calque.cli import main as run_command

    if signal.getsignal(signal.SIGINT) is end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run_command()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def end(*_: object) -> None:
    """End the process at once: no command has begun. It imports nothing, because a module that it needs may be the one
    that is half imported."""
    what, why, todo = "Interrupted", "Nothing was done", "Run it again"
    if "--json" in sys.argv:
        os.write(1, (DOCUMENT % (INTERRUPTED, what, why, todo)).encode())
    os.write(2, f"calque: {what}. {why}. {todo}.\n".encode())
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
