"""Where downloaded artifacts and built templates are kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder that `python -m calque.sandbox.install` fills.

    `CALQUE_CACHE` when it is set; `.cache` of the checkout when the package runs from one; else the user's cache
    folder (`XDG_CACHE_HOME`, or `~/.cache`).
    """
    chosen = os.environ.get("CALQUE_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "lib" / "calque").is_dir():
        return checkout / ".cache"
    user_caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_caches) / "calque"
