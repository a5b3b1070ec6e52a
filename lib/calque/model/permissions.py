"""The permissions of files and directories: owner, group, mode and ACL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BITS = 0o1777
"""The bits of a mode that calque carries over: read, write, execute, and the sticky bit. The bits that set users and
groups are no business of a warehouse."""
DEFAULT = "default:"
"""The prefix of ACL entries for what is made in a directory."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of one file or directory: the names of the owner and the group (a number where it has no name),
    `BITS` of the mode, and the entries of the ACL beyond the mode, sorted, as `getfacl` spells them: `user:bob:r-x`,
    `default:group::r-x`. Where there are entries for access, `group::` is among them, and the mode's bits of the group
    are the mask."""

    owner: str
    group: str
    mode: int
    acl: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((f"{self.owner}:{self.group}", f"{self.mode:04o}", *self.acl))

    @property
    def access(self) -> tuple[str, ...]:
        """The ACL's entries for the file or directory itself."""
        return tuple(entry for entry in self.acl if not entry.startswith(DEFAULT))

    @property
    def defaults(self) -> tuple[str, ...]:
        """The ACL's entries for what is made in the directory."""
        return tuple(entry for entry in self.acl if entry.startswith(DEFAULT))

    def whole_access(self) -> tuple[str, ...]:
        """Return `access` together with the entries that the mode implies; empty where `access` is."""
        if not self.access:
            return ()
        owner, mask, other = (letters(self.mode >> shift) for shift in (6, 3, 0))
        return (f"user::{owner}", *self.access, f"mask::{mask}", f"other::{other}")


def letters(bits: int) -> str:
    """Write three permission bits as `rwx`, with `-` for a bit that is not set."""
    return "".join(letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))


def bits_of(text: str) -> int:
    """Read `rwx` as three permission bits."""
    return sum(bit for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if letter in text)


def beyond_mode(entries: Iterable[str]) -> tuple[str, ...]:
    """Return those of an ACL's entries that the mode does not imply, sorted, as `Permissions.acl` has them."""
    return tuple(sorted(entry for entry in entries if not entry.startswith(("user::", "mask::", "other::"))))
