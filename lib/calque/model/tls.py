"""The certificates of TLS connections, by which a server proves who it is, and its client to it. calque is the client
of some and the server of others."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from calque.errors import Refused


@dataclass(frozen=True, slots=True)
class Tls:
    """The TLS settings of a client: paths of PEM files.

    `ca` is the file of the authorities that may vouch for the server; empty for those that the system trusts.
    `certificate` and `key` are calque's own, both or none. With `verify` False any server counts as the right one.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Return a TLS context of what is in the files at this moment. Raises `Refused` where they can't be used."""
        context = self._trusting()
        if self.certificate:
            load_certificate(context, self.certificate, self.key)
        return context

    def _trusting(self) -> ssl.SSLContext:
        context = trusting(ssl.Purpose.SERVER_AUTH, self.ca)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The TLS settings of a server of calque's: paths of PEM files.

    `certificate` and `key` are what the server shows. `ca` is the file of the authorities by one of which each client's
    certificate has to be signed; empty where clients need no certificate.
    """

    certificate: str
    key: str
    ca: str = ""

    def context(self) -> ssl.SSLContext:
        """Return a TLS context of what is in the files at this moment. Raises `Refused` where they can't be used."""
        context = trusting(ssl.Purpose.CLIENT_AUTH, self.ca)
        self.load(context)
        if self.ca:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Load the certificate and key that are in the files now into `context`, which shows them from its next
        connection on. Raises `Refused` where they can't be read or do not fit each other."""
        load_certificate(context, self.certificate, self.key)


def trusting(purpose: ssl.Purpose, ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(purpose, cafile=ca or None)
    except (OSError, ValueError) as error:
        what = f"The certificates in {ca} can't be used"
        raise Refused(what, reason(error), "Give a PEM file that calque's user may read") from None


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        # With an empty password an encrypted key is refused; without one, OpenSSL asks the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        what = f"The certificate {certificate} can't be used with the key {key}"
        todo = "Give a certificate and its key, not encrypted, in PEM files that calque's user may read"
        raise Refused(what, reason(error), todo) from None


def reason(error: Exception) -> str:
    """Return what OpenSSL or the system says of the error, without numbers of lines and of errors."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "They are no PEM files").replace("_", " ").capitalize()
    return (isinstance(error, OSError) and error.strerror) or str(error)
