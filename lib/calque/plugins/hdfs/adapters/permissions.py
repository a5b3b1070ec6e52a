"""The owners, groups, modes and ACLs of HDFS, read and set by the calls of a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from calque.adapters.files.permission_changes import ALL_RIGHTS, WITHOUT_ACLS, made
from calque.model.permissions import BITS, DEFAULT, Permissions, beyond_mode, letters

if TYPE_CHECKING:
    from hdfs_native import AclEntry, AsyncClient


class Ask(Protocol):
    """A function that has one of the clients make a call about `path`, and returns the answer. Raises `OSError`."""

    def __call__(self, path: str, call: Callable[[AsyncClient], Awaitable[Any]], /) -> Any: ...


def read(ask: Ask, path: str) -> Permissions:
    """Return the permissions of the path. This takes one call, or two where the NameNode has no ACLs. Raises
    `OSError`."""
    try:
        status = ask(path, lambda client: client.get_acl_status(path))
    except OSError as error:
        if error.errno not in WITHOUT_ACLS:
            raise
        status = ask(path, lambda client: client.get_file_info(path))
        return Permissions(status.owner, status.group, status.permission & BITS)
    acl = beyond_mode(text_of(entry) for entry in status.entries)
    return Permissions(status.owner, status.group, status.permission & BITS, acl)


def write(ask: Ask, path: str, permissions: Permissions) -> str:
    """Give the path the permissions by calls for those parts that differ. Return what could not be given, and why;
    empty where all was (see `system.PermissionSystem`). Raises `OSError`."""
    current, mode, problems = read(ask, path), permissions.mode, []
    if current.group != permissions.group:
        group = permissions.group
        problems += made(f"group {group}", lambda: ask(path, lambda client: client.set_owner(path, None, group)))
    if current.owner != permissions.owner:
        owner = permissions.owner
        denied = made(f"owner {owner}", lambda: ask(path, lambda client: client.set_owner(path, owner, None)))
        if denied and ask(path, lambda client: client.get_file_info(path)).isdir:
            mode |= ALL_RIGHTS
        problems += denied
    if current.acl != permissions.acl:
        acl = [entry_of(text) for text in whole(permissions)]
        what = f"ACL {','.join(permissions.acl)}" if acl else "no ACL"
        problems += made(
            what, lambda: ask(path, lambda client: client.set_acl(path, acl) if acl else client.remove_acl(path))
        )
    if current.mode != mode or current.acl != permissions.acl:
        problems += made(f"mode {mode:04o}", lambda: ask(path, lambda client: client.set_permission(path, mode)))
    return "; ".join(problems)


def whole(permissions: Permissions) -> Sequence[str]:
    """Return the entries of the ACL together with those that stand for the mode, as HDFS wants an ACL whole. The result
    is empty where the mode alone says all."""
    if not permissions.acl:
        return ()
    owner, group, others = (letters(permissions.mode >> shift) for shift in (6, 3, 0))
    access = permissions.whole_access() or (f"user::{owner}", f"group::{group}", f"other::{others}")
    return (*access, *permissions.defaults)


def text_of(entry: AclEntry) -> str:
    scope = DEFAULT if entry.scope == "default" else ""
    return f"{scope}{entry.type}:{entry.name or ''}:{entry.permissions}"


def entry_of(text: str) -> AclEntry:
    from hdfs_native import AclEntry

    scope = "default" if text.startswith(DEFAULT) else "access"
    kind, _, rest = text.removeprefix(DEFAULT).partition(":")
    name, _, rights = rest.rpartition(":")
    return AclEntry(kind, scope, rights, name or None)  # type: ignore[arg-type]
