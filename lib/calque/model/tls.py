"""How a server proves who it is, and calque to it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from calque.errors import Refused


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files.

    ca: the authorities that may vouch for the server; empty for those that the system trusts.
    certificate, key: calque's own, both or none.
    verify: False to take any server for the right one.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Made from what is in the files at this moment. Raises `Refused` where they can't be used."""
        context = self._trusting()
        if self.certificate:
            try:
                # With an empty password an encrypted key is refused; without one, OpenSSL asks the terminal.
                context.load_cert_chain(self.certificate, self.key, password="")
            except (OSError, ValueError) as error:
                what = f"The certificate {self.certificate} can't be used with the key {self.key}"
                todo = "Give a certificate and its key, not encrypted, in PEM files that calque's user may read"
                raise Refused(what, reason(error), todo) from None
        return context

    def _trusting(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
        except (OSError, ValueError) as error:
            what = f"The certificates in {self.ca} can't be used"
            raise Refused(what, reason(error), "Give a PEM file that calque's user may read") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def reason(error: Exception) -> str:
    """OpenSSL's or the system's, without numbers of lines and of errors."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "They are no PEM files").replace("_", " ").capitalize()
    return (isinstance(error, OSError) and error.strerror) or str(error)
