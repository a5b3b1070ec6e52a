"""The durations, sizes and percentages as people write them. Each function raises `Refused` for a value that is
none."""

from __future__ import annotations

import math
import re

import durationpy

from calque.errors import Refused

DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h|d|w))+")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtp]?i?b)?", re.IGNORECASE)
SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
POWERS = "kmgtp"


def seconds(value: object) -> float:
    """Return the seconds of "500ms", "10s", "1h30m" or "7d"; a number without a unit is seconds. Raises `Refused` for
    every other value."""
    text = _text(value)
    try:
        if NUMBER.fullmatch(text):
            return float(text)
        if DURATION.fullmatch(text):
            return durationpy.from_str(text).total_seconds()
    except durationpy.DurationError:
        raise Refused(f"{_shown(value)} is too long for a duration", todo='Write e.g. "3650d"') from None
    raise Refused(
        f"{_shown(value)} is not a duration", "Units are ms, s, m, h, d and w; without one it is seconds", 'Write "10s"'
    )


def size(value: object) -> int:
    """Return the bytes of "64MB" (10^6 each) or "64MiB" (2^20 each), rounded down; a number without a unit is bytes.
    Raises `Refused` for every other value."""
    match = SIZE.fullmatch(_text(value))
    if not match:
        raise Refused(f"{_shown(value)} is not a size", "Units are B, KB, MB, GB, TB and KiB to TiB", 'Write "64MB"')
    number, unit = float(match[1]), (match[2] or "b").lower()
    base = 1024 if "i" in unit else 1000
    power = POWERS.index(unit[0]) + 1 if unit[0] in POWERS else 0
    return math.floor(number * math.pow(base, power))


def share(value: object) -> float:
    """Return the share of a percentage, from 0 to 1: 0.1 for "10%". Raises `Refused` for every other value, and above
    100%."""
    match = SHARE.fullmatch(value) if isinstance(value, str) else None
    if not match or float(match[1]) > 100:
        raise Refused(f"{_shown(value)} is not a percentage", "It goes from 0% to 100%", 'Write "10%"')
    return float(match[1]) / 100


def _text(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value).strip() if number or isinstance(value, str) else ""


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
