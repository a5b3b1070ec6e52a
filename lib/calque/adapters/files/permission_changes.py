"""Changes of permissions, each of which may fail for want of a right."""

from __future__ import annotations

import errno
from collections.abc import Callable

ALL_RIGHTS = 0o700
"""The rights that a user keeps who has to stay a directory's owner, in addition to the directory's mode: files in it
are still to be written and swept."""
WITHOUT_ACLS = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOSYS}
"""The error numbers of file systems that have no ACLs, or have none at a path."""


def made(what: str, change: Callable[[], object]) -> list[str]:
    """Make the change. Returns, in a list, why it can't be made where that is for want of a right, of a name, or of
    ACLs; an empty list where it was made. Raises other `OSError`s."""
    try:
        change()
    except KeyError:
        return [f"{what}: there is no such name here"]
    except OSError as error:
        if not isinstance(error, PermissionError) and error.errno not in WITHOUT_ACLS:
            raise
        return [f"{what}: {error.strerror}"]
    return []
