"""Which files differ from the default branch, where git can tell."""

from __future__ import annotations

import subprocess
from pathlib import Path

DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "main")
"""The first of them that is known is compared with."""


def changed_files(root: Path) -> frozenset[str] | None:
    """Paths below `root`, the top of a work tree, that differ from where the default branch was left, committed or not.

    On the default branch itself it is what the newest commit brought: a merge brings all of its branch. `None` where
    git can't tell: without git, outside a repository, and in a clone without the commits to compare with.
    """
    base = commit_to_compare(root)
    if base is None:
        return None
    tracked = git(root, "diff", "--name-only", base)
    new = git(root, "ls-files", "--others", "--exclude-standard")
    return None if tracked is None or new is None else frozenset((tracked + new).splitlines())


def commit_to_compare(root: Path) -> str | None:
    head = git(root, "rev-parse", "HEAD")
    common = (git(root, "merge-base", "HEAD", branch) for branch in DEFAULT_BRANCHES)
    base = next((found for found in common if found is not None), None)
    base = git(root, "rev-parse", "--verify", "HEAD^1") if base is not None and base == head else base
    return None if base is None else base.strip()


def git(root: Path, *words: str) -> str | None:
    """What git answers, `None` when it can't."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout
