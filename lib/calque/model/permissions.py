"""Who may do what with a file or directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BITS = 0o1777
"""Of modes: read, write, execute, and the sticky bit. Bits that set users and groups are none of a warehouse's."""
DEFAULT = "default:"
"""How entries begin that are for what is made in a directory."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Names of the owner and the group (a number where it has no name), `BITS` of the mode, and the entries of the
    ACL beyond the mode, sorted, as `getfacl` spells them: `user:bob:r-x`, `default:group::r-x`. Where there are some
    for access, `group::` is among them, and the mode's bits of the group are the mask."""

    owner: str
    group: str
    mode: int
    acl: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((f"{self.owner}:{self.group}", f"{self.mode:04o}", *self.acl))

    @property
    def access(self) -> tuple[str, ...]:
        """The entries for the file or directory itself."""
        return tuple(entry for entry in self.acl if not entry.startswith(DEFAULT))

    @property
    def defaults(self) -> tuple[str, ...]:
        """The entries for what is made in the directory."""
        return tuple(entry for entry in self.acl if entry.startswith(DEFAULT))

    def whole_access(self) -> tuple[str, ...]:
        """`access` with the entries that the mode says; empty where there are none beyond it."""
        if not self.access:
            return ()
        owner, mask, other = (letters(self.mode >> shift) for shift in (6, 3, 0))
        return (f"user::{owner}", *self.access, f"mask::{mask}", f"other::{other}")


def letters(bits: int) -> str:
    """Three bits as `rwx`."""
    return "".join(letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))


def bits_of(text: str) -> int:
    """`rwx` as three bits."""
    return sum(bit for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if letter in text)


def beyond_mode(entries: Iterable[str]) -> tuple[str, ...]:
    """Those of all entries of an ACL that `Permissions` names, sorted."""
    return tuple(sorted(entry for entry in entries if not entry.startswith(("user::", "mask::", "other::"))))
