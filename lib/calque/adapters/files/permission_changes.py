"""Changes of permissions, each of which may be missing for want of a right."""

from __future__ import annotations

import errno
from collections.abc import Callable

ALL_RIGHTS = 0o700
"""What who has to stay a directory's owner keeps, whatever its mode: what is in it is still to be written and swept."""
WITHOUT_ACLS = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOSYS}
"""What systems say that have no ACLs, or have none there."""


def made(what: str, change: Callable[[], object]) -> list[str]:
    """Make the change; why it can't be made, where that is for want of a right, of a name, or of ACLs. Raises
    `OSError`."""
    try:
        change()
    except KeyError:
        return [f"{what}: there is no such name here"]
    except OSError as error:
        if not isinstance(error, PermissionError) and error.errno not in WITHOUT_ACLS:
            raise
        return [f"{what}: {error.strerror}"]
    return []
