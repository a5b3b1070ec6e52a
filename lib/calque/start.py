"""The entry of the `calque` command: Ctrl-C ends it in order from the first moment on, while modules are imported."""

from __future__ import annotations

import os
import signal
import sys


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
    """End the process at once: no command has begun."""
    from json import dumps

    from calque.errors import Interrupted

    error = Interrupted("Interrupted", "Nothing was done", "Run it again")
    if "--json" in sys.argv:
        os.write(1, f"{dumps(error.document(), indent=2)}\n".encode())
    os.write(2, f"calque: {error}\n".encode())
    os._exit(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())
