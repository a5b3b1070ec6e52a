"""As whom, and how, a metastore is called."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from calque.errors import Refused


@dataclass(frozen=True, slots=True)
class MetastoreAccess:
    """How calque calls a metastore. It can be printed and pickled: secrets are references.

    user: the name that calls are made under; empty for the operating system's, as Hive's own clients have it.
    """

    user: str = ""

    def user_name(self) -> str:
        """Raises `Refused` where the operating system has no name for the user."""
        if self.user:
            return self.user
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            what = f"The user {os.getuid()} of this process has no name"
            raise Refused(what, "Metastores know users by their names", 'Write user = "calque"') from None
