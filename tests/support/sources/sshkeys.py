"""Pairs of keys for SSH, as files of OpenSSH's form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


@dataclass(frozen=True, slots=True)
class SshKey:
    """The file of the private key, and the public one as a line of `authorized_keys`."""

    path: Path
    public: str


def make_key(path: Path, kind: str = "ecdsa", passphrase: str = "") -> SshKey:
    made = {
        "ecdsa": lambda: generate_private_key(SECP256R1()),
        "ed25519": Ed25519PrivateKey.generate,
        "rsa": lambda: generate_rsa_key(65537, 2048),
    }[kind]()
    encryption = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, encryption))
    path.chmod(0o600)
    return SshKey(path, made.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
