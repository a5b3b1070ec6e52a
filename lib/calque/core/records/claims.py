"""Claims on directories (`model.claims`), as the small files that carry them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, fields

from calque.core.formats.bounded import parse_json
from calque.core.formats.layout import join
from calque.model.claims import Claim
from calque.model.names import OURS

CLAIM = f"{OURS}_claim."
"""The beginning of the name of a claim's file; the claim's generation follows."""
OLD_MARK = f"{OURS}_owner."
"""The beginning of the name of a hidden directory: older versions marked a directory as calque's by one."""
ASIDE = f"{OURS}_removed."
"""The beginning of the name of a directory that is being removed; the number of the claim on it follows."""
_NAME = re.compile(re.escape(CLAIM) + r"([1-9][0-9]*)")
_FIELDS = tuple(field.name for field in fields(Claim))


def generations(names: Iterable[str]) -> list[int]:
    """Return the generations of the claims among `names`, the names of entries of one directory, ascending."""
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def claim_file(location: str, generation: int) -> str:
    return join(location, f"{CLAIM}{generation}")


def is_mark(name: str) -> bool:
    """Tell whether a name in a directory is that of a claim or of an old mark, so that calque made the directory."""
    return _NAME.fullmatch(name) is not None or name.startswith(OLD_MARK)


def written(claim: Claim) -> bytes:
    return (json.dumps(asdict(claim), sort_keys=True) + "\n").encode()


def read(content: bytes) -> Claim | None:
    """Return the claim that a file's content says; None where it says none, because a file that can't be read proves
    nothing. Fields of later versions are ignored."""
    try:
        values = parse_json(content)
        claim = Claim(**{name: values[name] for name in _FIELDS if name in values})
    except (ValueError, TypeError):
        return None
    texts = (claim.number, claim.ledger, claim.writer, claim.deployment, claim.table, claim.partition)
    is_sound = all(isinstance(text, str) for text in (*texts, claim.incarnation)) and isinstance(claim.removal, bool)
    return claim if is_sound and isinstance(claim.epoch, int) else None
