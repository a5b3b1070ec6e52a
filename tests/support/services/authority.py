"""An authority, and the certificates that it signs: for servers in tests, and for calque."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate

PASSWORD = "of-the-keystore"
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
LESS_LONG_AGO = datetime(2002, 1, 1, tzinfo=UTC)


class Authority:
    """Its files lie in `folder`; `ca` is what trusts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._authority = trustme.CA()
        self.ca = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca)

    def server(self, *names: str, expired: bool = False, asks: bool = False) -> ssl.SSLContext:
        """For a server of these names. `asks`: for a certificate of the client's, by TLS 1.2, where the client hears
        of a refusal before it sends anything."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        period = {"not_before": LONG_AGO, "not_after": LESS_LONG_AGO} if expired else {}
        self._authority.issue_cert(*names, **period).configure_cert(context)
        if asks:
            self._authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    def keystore(self, *names: str) -> tuple[Path, str]:
        """A PKCS12 file for a server of these names, and its password."""
        leaf = self._authority.issue_cert(*names)
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        chain = [load_pem_x509_certificate(pem.bytes()) for pem in leaf.cert_chain_pems]
        content = pkcs12.serialize_key_and_certificates(
            b"metastore",
            key,  # type: ignore[arg-type]
            chain[0],
            chain[1:],
            BestAvailableEncryption(PASSWORD.encode()),
        )
        file = self.folder / f"{names[0]}.p12"
        file.write_bytes(content)
        return file, PASSWORD

    def client(self, name: str) -> tuple[str, str]:
        """The files of a certificate and of its key."""
        leaf = self._authority.issue_cert(name)
        certificate, key = str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)
        return certificate, key
