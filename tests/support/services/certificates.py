"""Certificates of servers that tests start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Certified:
    """Files of one server, in PEM: its certificate, which is its own authority's, and its key."""

    certificate: str
    key: str


def certified(address: str, folder: Path) -> Certified:
    """Of the server at an IP address, for a day."""
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files = Certified(str(folder / "server.pem"), str(folder / "server.key"))
    Path(files.certificate).write_bytes(certificate.public_bytes(pem))
    Path(files.key).write_bytes(key.private_bytes(pem, private, plain))
    return files
