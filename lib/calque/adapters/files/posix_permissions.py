"""The owners, groups, modes and ACLs of this machine's files, as names.

Linux keeps an ACL in an extended attribute: a version, then for each entry its tag, its bits and the number of a user
or group (`linux/posix_acl_xattr.h`).
"""

# ruff: noqa: PTH101, PTH114, PTH116

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache

from calque.adapters.files.permission_changes import ALL_RIGHTS, WITHOUT_ACLS, made
from calque.model.permissions import BITS, DEFAULT, Permissions, beyond_mode, bits_of, letters

ACCESS_ACL, DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
VERSION = struct.pack("<I", 2)
ENTRY = struct.Struct("<HHI")
TAGS = {0x01: "user", 0x02: "user", 0x04: "group", 0x08: "group", 0x10: "mask", 0x20: "other"}
USERS, GROUPS, NAMED = 0x02, 0x08, (0x02, 0x08)
NOBODY = 0xFFFFFFFF
"""The number in entries without a name."""
SET_BITS = 0o6000
"""The bits of a directory that set users and groups, which stay as they are."""


def read(path: str) -> Permissions | None:
    """Return the permissions of the file or directory at the end of links; None when nothing is there. Raises
    `OSError`."""
    try:
        status = os.stat(path)
        acl = beyond_mode(entries(path, ACCESS_ACL))
        if stat.S_ISDIR(status.st_mode):
            acl = tuple(sorted((*acl, *(DEFAULT + entry for entry in entries(path, DEFAULT_ACL)))))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Permissions(name_of_user(status.st_uid), name_of_group(status.st_gid), status.st_mode & BITS, acl)


def write(path: str, permissions: Permissions) -> str:
    """Give the file or directory these permissions, as `system.PermissionSystem.set_permissions` does, and return what
    could not be given, and why; empty where all was, and for a symbolic link, which is left as it is. The mode comes
    last, because a change of owners may clear bits of it, and because it says the ACL's mask. Raises
    `FileNotFoundError`."""
    if os.path.islink(path) or (current := read(path)) == permissions:
        return ""
    if current is None:
        raise FileNotFoundError(errno.ENOENT, "Nothing is there", path)
    group, owner, problems = permissions.group, permissions.owner, []
    if current.group != group:
        problems += made(f"group {group}", lambda: os.chown(path, -1, number_of_group(group)))
    if current.owner != owner:
        problems += made(f"owner {owner}", lambda: os.chown(path, number_of_user(owner), -1))
    problems += acl_written(path, ACCESS_ACL, current.access, permissions.access, permissions.whole_access())
    defaults = tuple(entry.removeprefix(DEFAULT) for entry in permissions.defaults)
    problems += acl_written(path, DEFAULT_ACL, current.defaults, permissions.defaults, defaults)
    status, mode = os.stat(path), permissions.mode
    if stat.S_ISDIR(status.st_mode):
        mode |= status.st_mode & SET_BITS | (0 if name_of_user(status.st_uid) == owner else ALL_RIGHTS)
    problems += made(f"mode {mode:04o}", lambda: os.chmod(path, mode))
    return "; ".join(problems)


def acl_written(
    path: str, attribute: str, current: Sequence[str], wanted: Sequence[str], whole: Sequence[str]
) -> list[str]:
    """Bring the ACL in the extended attribute `attribute` from the entries `current` to those `wanted`; no attribute is
    left where none are wanted. `whole` are the wanted entries together with those that stand for the mode, as the
    kernel takes an ACL. Returns what could not be done, and why; empty where all was."""
    if wanted and wanted != current:
        return made(f"ACL {','.join(wanted)}", lambda: os.setxattr(path, attribute, packed(whole)))
    if current and not wanted:
        return made("no ACL", lambda: os.removexattr(path, attribute))
    return []


def entries(path: str, attribute: str) -> Iterator[str]:
    """Give all entries of an ACL as text; none where there is no ACL."""
    try:
        content = os.getxattr(path, attribute)
    except OSError as error:
        if error.errno in WITHOUT_ACLS:
            return
        raise
    for tag, bits, number in ENTRY.iter_unpack(content[len(VERSION) :]):
        name = name_of_user(number) if tag == USERS else name_of_group(number) if tag == GROUPS else ""
        yield f"{TAGS[tag]}:{name}:{letters(bits)}"


def packed(acl: Sequence[str]) -> bytes:
    """Return the attribute with these entries, in the order that Linux asks for. Raises `KeyError` for an unknown
    name."""
    return VERSION + b"".join(ENTRY.pack(*entry) for entry in sorted(map(parsed, acl)))


def parsed(entry: str) -> tuple[int, int, int]:
    """Return tag, bits and number of an entry. Raises `KeyError` for an unknown name."""
    kind, _, rest = entry.partition(":")
    name, _, rights = rest.rpartition(":")
    tags = [tag for tag, word in TAGS.items() if word == kind and (tag in NAMED) == bool(name)]
    number = (number_of_user if kind == "user" else number_of_group)(name) if name else NOBODY
    return tags[0], bits_of(rights), number


def name_of_user(number: int) -> str:
    try:
        return known_user(number)
    except KeyError:
        return str(number)


def name_of_group(number: int) -> str:
    try:
        return known_group(number)
    except KeyError:
        return str(number)


def number_of_user(name: str) -> int:
    """Return the number of the user, whose name may be a number itself. Raises `KeyError` for an unknown name."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if name.isdecimal():
            return int(name)
        raise


def number_of_group(name: str) -> int:
    """Return the number of the group, whose name may be a number itself. Raises `KeyError` for an unknown name."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        if name.isdecimal():
            return int(name)
        raise


@lru_cache(4096)
def known_user(number: int) -> str:
    """Return the user's name. It is remembered, because a directory service may have to be asked. Raises `KeyError`
    without one."""
    return pwd.getpwuid(number).pw_name


@lru_cache(4096)
def known_group(number: int) -> str:
    return grp.getgrgid(number).gr_name
