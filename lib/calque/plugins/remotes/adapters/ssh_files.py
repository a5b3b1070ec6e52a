"""The files that SSH needs: private keys, and `known_hosts` as OpenSSH writes it (sshd(8)).

An invalid file raises `Refused` here, because it concerns all connections that need the file; `channel` makes
`AccessRefused` of it.
"""

from __future__ import annotations

import hashlib
import stat
from base64 import b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from paramiko import HostKeys, PKey, SSHException
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.pkey import UnknownKeyType

from calque.errors import Refused
from calque.model.secrets import Secret
from calque.plugins.remotes.model import SshHop

OTHERS = stat.S_IRWXG | stat.S_IRWXO
HASHED = "|1|"
REVOKED, AUTHORITY = "@revoked", "@cert-authority"


def private_key(path: str, passphrase: Secret | None) -> PKey:
    """Return the private key in a file in the format of OpenSSH or of PEM. Raises `Refused` where the file can't be
    read or used, and where other users may read it."""
    password = passphrase.read().encode() if passphrase is not None else None
    try:
        if Path(path).stat().st_mode & OTHERS:
            why = "A key that others can read is no secret"
            raise Refused(f"Others may read the private key {path}", why, f"Write chmod 600 {path}")
        try:
            return PKey.from_path(path)
        except TypeError:
            # It is encrypted.
            return PKey.from_path(path, password)
    except OSError as error:
        raise Refused(f"The private key {path} can't be read", str(error.strerror)) from None
    except (TypeError, ValueError, SSHException, UnknownKeyType, UnsupportedAlgorithm) as error:
        why = "It is encrypted" if password is None else "Its passphrase does not fit"
        todo = "Name the variable or the file that has its passphrase in passphrase_env or passphrase_file"
        raise Refused(
            f"The private key {path} can't be used", f"{why}, or it is no key of OpenSSH or PEM", todo
        ) from error


def fingerprint(key: PKey) -> str:
    """Return the key's fingerprint as `ssh-keygen -l` shows it."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return f"{key.get_name()} SHA256:{b64encode(digest).decode().rstrip('=')}"


@dataclass(frozen=True, slots=True)
class KeysOfHost:
    """The keys that a `known_hosts` file trusts for one host, and those that it revokes."""

    trusted: tuple[PKey, ...]
    revoked: tuple[PKey, ...]


def keys_of_host(path: str, hop: SshHop) -> KeysOfHost:
    """Return the keys that the `known_hosts` file at `path` has for the hop. Raises `Refused` where the file, or a line
    for the hop in it, can't be read."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        why = str(error.strerror) if isinstance(error, OSError) else "It is no UTF-8 text"
        raise Refused(f"The file of known hosts {path} can't be read", why) from None
    trusted: list[PKey] = []
    revoked: list[PKey] = []
    for number, mark, names, rest in _entries(lines):
        if mark != AUTHORITY and _is_for(names, hop):
            key = _key(path, number, names, rest)
            if key is not None:
                (revoked if mark == REVOKED else trusted).append(key)
    return KeysOfHost(tuple(trusted), tuple(revoked))


def _entries(lines: Sequence[str]) -> Iterator[tuple[int, str, str, str]]:
    """Return number, mark (such as `@revoked`), names, and the rest of each line with an entry."""
    for number, line in enumerate(lines, 1):
        fields = line.split(maxsplit=1)
        mark = fields[0] if fields and fields[0].startswith("@") else ""
        words = (fields[1] if mark and len(fields) > 1 else line).split(maxsplit=1)
        if len(words) == 2 and not words[0].startswith("#"):
            yield number, mark, words[0], words[1]


def _key(path: str, number: int, names: str, rest: str) -> PKey | None:
    """Return the key in a line of the file, or None for a kind of key that the SSH library does not know. Raises
    `Refused`."""
    try:
        entry = HostKeyEntry.from_line(" ".join([names, *rest.split()[:2]]), number)
    except (InvalidHostKey, SSHException, ValueError, IndexError) as error:
        raise Refused(f"Line {number} of {path} is no key of a host", "", "Mend it, or remove it") from error
    return entry.key if entry is not None else None


def _is_for(names: str, hop: SshHop) -> bool:
    """Tell whether the names of a line are the hop's. The names are hashed, or they are patterns, of which one with `!`
    excludes hosts."""
    name = hop.host if hop.port == 22 else f"[{hop.host}]:{hop.port}"
    if names.startswith(HASHED):
        try:
            return bool(HostKeys.hash_host(name, names) == names)
        except (NotBase64, AssertionError, IndexError):
            return False
    patterns = names.lower().split(",")
    if any(pattern.startswith("!") and _fits(name, pattern[1:]) for pattern in patterns):
        return False
    return any(_fits(name, pattern) for pattern in patterns if not pattern.startswith("!"))


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]"))
