"""Options of the configuration as fsspec's and as delta-rs's: users write one spelling for both.

The keys are `endpoint_url`, `key`, `secret`, `token`, `region`, `anon`, `profile` and all others that the library of a
scheme takes. Hadoop's names of the same things (`fs.s3a.endpoint` …) are understood too.
"""

from __future__ import annotations

from typing import Any

from calque.model.secrets import Options, Secret, revealed

HADOOP = {
    "fs.s3a.endpoint": "endpoint_url",
    "fs.s3a.access.key": "key",
    "fs.s3a.secret.key": "secret",
    "fs.s3a.session.token": "token",
    "fs.s3a.endpoint.region": "region",
}
UNCACHED = {"use_listings_cache": False}
CONNECTIONS = 32
BOOLEANS = {"true": True, "false": False}
BRIEF = {"timeout": "15s", "retry_timeout": "10s"}
"""The time limits for delta-rs, which would wait three minutes for a store that does not answer; calque tries again by
itself, and says so."""
IN_DELTA = {
    "endpoint_url": "aws_endpoint_url",
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
    "region": "aws_region",
    "anon": "aws_skip_signature",
}


def plain_names(options: Options) -> dict[str, str | Secret]:
    plain_options = {HADOOP.get(key, key): value for key, value in options.items()}
    endpoint = plain_options.get("endpoint_url")
    if isinstance(endpoint, str) and "://" not in endpoint:
        plain_options["endpoint_url"] = f"https://{endpoint}"
    return plain_options


def filesystem_options(protocol: str, options: Options) -> dict[str, Any]:
    """Return the arguments of `fsspec.filesystem` for the protocol, with the values of secrets. Raises `Refused` for a
    secret that can't be read."""
    plain_options = revealed(plain_names(options))
    named: dict[str, Any] = {key: BOOLEANS.get(value, value) for key, value in plain_options.items()}
    if protocol != "s3":
        return {**UNCACHED, **named}
    region = named.pop("region", None)
    client = {"region_name": region} if region else {}
    retries = {"max_attempts": 2}
    return {
        **UNCACHED,
        "client_kwargs": client,
        # Checksums that some stores do not know are only sent where the protocol demands them.
        "config_kwargs": {
            "max_pool_connections": CONNECTIONS,
            "retries": retries,
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        },
        **named,
    }


def delta_options(location: str, options: Options) -> Options:
    """Return the options of delta-rs for a table at a location. Secrets stay references."""
    if not location.startswith(("s3:", "s3a:")):
        return dict(options)
    named = {IN_DELTA.get(key, key): value for key, value in plain_names(options).items()}
    endpoint = named.get("aws_endpoint_url")
    if isinstance(endpoint, str) and endpoint.startswith("http:"):
        named.setdefault("aws_allow_http", "true")
    return {**BRIEF, **named}
