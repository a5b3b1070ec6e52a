"""The reader of a page, who carries out its blocks one after the other in a shell."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

END = "-- the block has ended"


def page_blocks(page: Path, kinds: Collection[str]) -> list[tuple[str, str]]:
    """The kind and the text of each block of these kinds, in the page's order."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    return [(token.info, token.content) for token in tokens if token.type == "fence" and token.info in kinds]


@contextmanager
def shell(
    folder: Path, environment: Mapping[str, str], user: tuple[int, int] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A shell that ends at the first command that fails. What it has started ends with it.

    `environment` is all that the shell has. `user` is the user and group id that it runs under, None for the present
    one.
    """
    user_id, group_id = user or (None, None)
    started = subprocess.Popen(
        ["bash", "-eu"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment,
        start_new_session=True,
        user=user_id,
        group=group_id,
        extra_groups=None if user is None else [],
    )
    with started:
        try:
            yield started
        finally:
            os.killpg(started.pid, signal.SIGKILL)


def carried_out(started: subprocess.Popen[str], text: str) -> str:
    """What the block prints. Fails where a command of it fails."""
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdin.write(f"{text}\necho '{END}'\n")
    started.stdin.flush()
    lines: list[str] = []
    for line in started.stdout:
        if line.strip() == END:
            return "".join(lines)
        lines.append(line)
    pytest.fail(f"{text}\nended the shell:\n{''.join(lines)}")
