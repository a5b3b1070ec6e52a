"""The keys of `[serve]`: where a running process answers, over what, and to whom."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Literal

from pydantic import Field, model_validator

from calque.config.checks import Endpoint, OptionalEndpoint, OptionalFile
from calque.config.keys import Section
from calque.config.pydantic_errors import WrongError, with_pydantic_errors
from calque.config.secret_keys import SecretFile, SecretVariable, one_secret
from calque.errors import Refused
from calque.model.secrets import Secret
from calque.model.tls import ServerTls


class ServeTls(Section):
    """The keys for TLS of the pages. Any key in the section asks for TLS."""

    ca: OptionalFile = ""
    certificate: OptionalFile = ""
    key: OptionalFile = ""

    @model_validator(mode="after")
    def _is_usable(self) -> ServeTls:
        given = [name for name in ("ca", "certificate", "key") if getattr(self, name)]
        for missing in ("certificate", "key"):
            if given and missing not in given:
                why, todo = "A server shows a certificate, and needs its key", f"Write {missing} beside {given[0]}"
                raise WrongError(Refused(f"{missing} is missing", why, todo), given[0])
        if given:
            with_pydantic_errors(ServerTls.context)(self.tls())
        return self

    def tls(self) -> ServerTls | None:
        return ServerTls(self.certificate, self.key, self.ca) if self.certificate else None


class Serve(Section):
    """The keys of the pages. `address` is None for no pages. A file that does not have `address` gets the default one,
    or any free port where that is taken."""

    address: OptionalEndpoint = None
    token_env: SecretVariable = None
    token_file: SecretFile = None
    metrics_token_env: SecretVariable = None
    metrics_token_file: SecretFile = None
    reading: Literal["token", "open"] = "token"
    tls: ServeTls = Field(default_factory=dict, validate_default=True)

    @model_validator(mode="after")
    def _is_guarded(self) -> Serve:
        self.token()
        self.metrics_token()
        if self.address is not None:
            with_pydantic_errors(self._require_guard)(self.address)
        return self

    def is_default(self) -> bool:
        return "address" not in self.model_fields_set

    def token(self) -> Secret | None:
        """Return the token that opens all pages; None where none is given."""
        return one_secret("token", self.token_env, self.token_file)

    def metrics_token(self) -> Secret | None:
        """Return the token that opens the metrics alone; None where none is given."""
        return one_secret("metrics_token", self.metrics_token_env, self.metrics_token_file)

    def at(self, address: Endpoint) -> Serve:
        """Return the section with another address. Raises `Refused` for an address beyond this host where no token is
        given, or where reading is open."""
        self._require_guard(address)
        update: dict[str, Any] = {"address": address}
        return self.model_copy(update=update)

    def _require_guard(self, address: Endpoint) -> None:
        if is_loopback(address.host):
            return
        if self.reading == "open":
            raise Refused(
                f"{address} is beyond this host, and reading is open",
                "Whoever reaches it could read the names of tables, and what happens to them",
                'Write reading = "token" below [serve], or an address on 127.0.0.1',
            )
        if self.token() is None:
            raise Refused(
                f"{address} is beyond this host, and no token is given",
                "Whoever reaches it could read the names of tables, and what happens to them",
                "Write token_env or token_file below [serve], or an address on 127.0.0.1",
            )


def is_loopback(host: str) -> bool:
    """Tell whether only this host reaches `host`. That is certain for an address and for `localhost`; any other name
    counts as one that others reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
