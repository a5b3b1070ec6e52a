"""The translation of a broker's refusals, and of errors of TLS, into calque's errors."""

from __future__ import annotations

import re
import ssl

from calque.errors import AccessRefused, CalqueError, Refused, Unavailable
from calque.model.tls import reason
from calque.plugins.notices.adapters.stomp.address import StompAddress

DENIED = re.compile(
    r"SecurityException|not authorized|not authenticated|not permitted|access[ _-]?refused|denied|password"
    r"|credential|unable to validate user|authenticat|Bad CONNECT",
    re.IGNORECASE,
)
"""The words by which ActiveMQ Classic, Artemis and RabbitMQ say that a login or a right is missing."""
TOO_LARGE = re.compile(r"maximum (frame|header|data|command) (size|length)|too (large|big|long)", re.IGNORECASE)
EXPIRED, OTHER_NAMES = 10, (62, 64)
"""OpenSSL's numbers for a certificate that expired, and for one that is for other names."""
LONGEST_TEXT = 300


def unavailable(address: StompAddress, why: str) -> Unavailable:
    return Unavailable(
        f"The broker at {address} does not let messages be sent or received",
        why,
        f"Check that it runs and {address.section} names it; it is tried again",
    )


def refused_by(address: StompAddress, text: str) -> CalqueError:
    """Return the error to raise for the text of an ERROR frame: `AccessRefused` for a login or a right, else
    `Unavailable`."""
    shown = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
    if DENIED.search(text):
        who = f"the user {address.user}" if address.user else "a client without a login"
        return AccessRefused(
            f"The broker at {address} refuses {who}",
            shown,
            f"Check the user and the password in {address.section}, and what the user may do there",
        )
    return unavailable(address, f"It says: {shown}")


def too_large(address: StompAddress, text: str, topic: str, size: int) -> Refused:
    return Refused(
        f"The broker at {address} takes no message of {size} bytes for topic {topic}",
        text,
        "Raise wireFormat.maxFrameSize of its STOMP connector",
    )


def distrusted(address: StompAddress, host: str, port: int, error: ssl.SSLError) -> AccessRefused:
    """Return the refusal for an error of TLS with a broker that answered: what is wrong with the certificate or the
    port."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem, todo = "is from nobody that calque trusts", "Name the authority that signed it in tls.ca"
        if error.verify_code == EXPIRED:
            problem, todo = "has expired", "Have the broker's certificate renewed"
        if error.verify_code in OTHER_NAMES:
            problem, todo = "is for other names", "Write the address by a name that is in the certificate"
        what = f"The certificate of the broker at {host}:{port} {problem}"
        return AccessRefused(what, error.verify_message.capitalize(), f"{todo} ({address.section})")
    if "ALERT" in (error.reason or ""):
        todo = "Give a certificate and a key that it takes in tls.certificate and tls.key"
        return AccessRefused(f"The broker at {host}:{port} refuses this client's TLS", reason(error), todo)
    todo = f"Write the port of its TLS connector in {address.section}, or leave the options of TLS out"
    return AccessRefused(f"The broker at {host}:{port} does not speak TLS there", reason(error), todo)


def speaks_tls(address: StompAddress) -> AccessRefused:
    todo = f"Give tls.ca in {address.section}, or write the port of its connector without TLS"
    return AccessRefused(f"The broker at {address} speaks TLS there", "It answered with a record of TLS", todo)
