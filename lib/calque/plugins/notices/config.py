"""The sections [notices.NAME] of the configuration, their keys, and the checks of those keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Strict, model_validator

from calque.config import places, units
from calque.config.checks import OptionTable, Patterns
from calque.config.keys import Section
from calque.config.plugs import AT_SOURCE, Config
from calque.config.pydantic_errors import WrongError, with_pydantic_errors
from calque.config.sections import KeyPath, ReadFile, SectionKind
from calque.errors import Refused, nearest
from calque.model.secrets import Options
from calque.plugins.kafka import config as librdkafka
from calque.plugins.notices.core.notice import NoticeType
from calque.plugins.notices.core.selection import FOUND
from calque.plugins.notices.core.topics import TopicTemplate

Protocol = Literal["kafka", "stomp"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
PORTS: Mapping[str, int] = {"kafka": 9092, "stomp": 61613}
EXAMPLE = 'Write "kafka://host:9092" or "stomp://user@host:61613"'
ADDRESS = re.compile(r"(?:([^@/\s]+)@)?([^@/\s]+)/?")
TYPES = frozenset({*(one.value for one in NoticeType), FOUND})
TOPICS = ("topic.partitions", "topic.copies")
"""Options that say with how many partitions and copies a missing topic is made on Kafka."""
STOMP_OPTIONS = frozenset({"password", "keep", "tls", "tls.ca", "tls.certificate", "tls.key"})
"""The options that a STOMP channel may have. `tls` is `verified` or `unverified`; `keep` says how long a broker keeps
messages for subscribers that are away."""


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """The address of a broker. `brokers` is a comma-separated list of host:port; `user` may be empty."""

    protocol: Protocol
    brokers: str
    user: str = ""

    def __str__(self) -> str:
        return f"{self.protocol}://{self.user}{'@' if self.user else ''}{self.brokers}"


def broker_url(text: object) -> BrokerUrl:
    """Return the address that a text such as `kafka://host:9092` or `stomp://user@host` names, with the protocol's port
    added where a host has none. Raises `Refused` where the text is no address, or holds a password or, for Kafka, a
    user's name."""
    if not isinstance(text, str):
        raise Refused("it has the wrong type", "It is text in quotes", EXAMPLE)
    scheme, separator, rest = text.partition("://")
    protocol = next((one for one in PROTOCOLS if one == scheme.lower()), None)
    match = ADDRESS.fullmatch(rest)
    if protocol is None or not separator or match is None:
        raise Refused(
            f'"{places.without_login(text)}" is no address of a broker',
            "One begins with kafka:// or stomp://",
            EXAMPLE,
        )
    user = match[1] or ""
    if ":" in user:
        todo = 'Write options = { password_env = "BROKER_PASSWORD" }'
        raise Refused("it has a password in it", "Addresses are shown in errors", todo)
    if user and protocol == "kafka":
        raise Refused(
            "it has a user's name in it", "Kafka's logins are options", 'Write options = { "sasl.username" = "…" }'
        )
    hosts = [part if re.search(r":\d+$", part) else f"{part}:{PORTS[protocol]}" for part in match[2].split(",")]
    return BrokerUrl(protocol, places.brokers(",".join(hosts)), user)


def check_options(protocol: Protocol, options: Options) -> None:
    """Check the channel's options for this protocol. Raises `WrongError` for an option that the broker's client does
    not have, and for a value that an option can't have."""
    if protocol == "kafka":
        refusal = librdkafka.refusal({key: value for key, value in options.items() if key not in TOPICS})
        if refusal is not None:
            raise WrongError(refusal[1], refusal[0])
        for key in TOPICS:
            if key in options and not re.fullmatch("[1-9][0-9]{0,3}", str(options[key])):
                raise WrongError(Refused(f'"{key}" is no number', "It counts", f'Write "{key}" = "1"'), key)
        return
    for key in options:
        if key not in STOMP_OPTIONS:
            raise WrongError(Refused(f'"{key}" is no option of STOMP', nearest(key, STOMP_OPTIONS)), key)
    if options.get("tls", "verified") not in ("verified", "unverified"):
        raise WrongError(Refused('"tls" is no choice', todo='Write "verified" or "unverified"'), "tls")
    with_pydantic_errors(units.seconds)(options.get("keep", "7d"))


def _template(text: str) -> str:
    TopicTemplate(text, "source")
    return text


def _types(types: tuple[str, ...]) -> tuple[str, ...]:
    for one in types:
        if one not in TYPES:
            raise Refused(
                f'"{one}" is no type of notices', nearest(one, TYPES), f"Write some of {', '.join(sorted(TYPES))}"
            )
    return tuple(dict.fromkeys(types))


BrokerAddress = Annotated[BrokerUrl, BeforeValidator(with_pydantic_errors(broker_url))]
Template = Annotated[str, AfterValidator(with_pydantic_errors(_template))]
Types = Annotated[tuple[str, ...], Strict(False), AfterValidator(with_pydantic_errors(_types))]


class Notices(Section):
    """A channel of notices. `at` is `source`, or the name of a target."""

    at: str = AT_SOURCE
    url: BrokerAddress
    topic: Template = "{source}.{database}.{table}"
    types: Types = ("add_partition", "done")
    format: Literal["calque", "hcatalog"] = "calque"
    include: Patterns = ("*.*",)
    exclude: Patterns = ()
    options: OptionTable = {}  # noqa: RUF012 - pydantic copies it

    @model_validator(mode="after")
    def _options_fit(self) -> Notices:
        check_options(self.url.protocol, self.options)
        return self


CHANNEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def named_channels(channels: Mapping[str, Notices]) -> Mapping[str, Notices]:
    """Return the channels as they are. Raises `WrongError` for a name that no channel can have."""
    for name in channels:
        if not CHANNEL.fullmatch(name):
            why = 'Letters, digits, "_" and "-", at most 64, make a name'
            raise WrongError(Refused(f'"{name}" is no name for a channel', why, "Write e.g. [notices.bus]"), name)
    return channels


@dataclass(frozen=True, slots=True)
class NoticeChannel:
    """One channel of notices of the configuration: its name, the source of whose tables it tells, and the keys of its
    section. `at` is `source`, or the name of the target where what it tells of is visible when the notice is sent."""

    name: str
    source: str
    keys: Notices

    @property
    def at(self) -> str:
        return self.keys.at

    def is_at_source(self) -> bool:
        return self.keys.at == AT_SOURCE


def misfits(config: ReadFile) -> Iterator[tuple[KeyPath, Refused]]:
    """Yield a refusal, with its place in the file, for each channel at a place that does not exist, and for a target
    called `source`, which the key `at` could not tell from the source itself."""
    channels = config.section(NOTICES)
    for name, channel in channels.items():
        if channel.at != AT_SOURCE and channel.at not in config.targets:
            what = f'"{channel.at}" is neither "source" nor a target'
            yield ("notices", name, "at"), Refused(what, nearest(channel.at, (AT_SOURCE, *config.targets)))
    if AT_SOURCE in config.targets and channels:
        what = 'a target is called "source"'
        why = "Notices would be of that target, or of the source itself"
        yield ("targets", AT_SOURCE), Refused(what, why, "Give the target another name")


def model_at(_path: KeyPath) -> type[Notices]:
    return Notices


def sections_in(channels: Mapping[str, Notices]) -> Iterator[BaseModel]:
    yield from channels.values()


def no_channels() -> Mapping[str, Notices]:
    return {}


TEMPLATE_OF_CHANNEL = """\
# One section for each channel of notices, which tells a message broker what happens; none by default.
# [notices.bus]
# at = "source"                             # or the name of a target: what it tells of is visible there
# url = "kafka://127.0.0.1:9092"            # of the broker; or stomp://user@host:61613 (ActiveMQ)
# topic = "{source}.{database}.{table}"     # or {source}.{database}, or one for all
# types = ["add_partition", "done"]         # create_table, alter_table, drop_table, drop_partition, insert, found …
# format = "calque"                         # calque | hcatalog: the messages of HCatalog's own classes
# include = ["*.*"]                         # of tables, as they are called at the source
# exclude = []                              # wins
# options = {}                              # librdkafka's, e.g. { "sasl.username" = "calque" }; STOMP: { password_env }
"""
NOTICES = SectionKind(
    name="notices",
    annotation=Annotated[Mapping[str, Notices], AfterValidator(named_channels)],
    default=no_channels,
    models={"notices.NAME": Notices},
    model_at=model_at,
    needs_source=True,
    models_in=sections_in,
    misfits=misfits,
    template=TEMPLATE_OF_CHANNEL,
)


def channels_of(config: Config) -> Mapping[str, NoticeChannel]:
    """Return the configuration's channels by name, in the order of the file."""
    channels = config.section(NOTICES)
    source = config.own_sources()[0] if channels else ""
    return {name: NoticeChannel(name, source, keys) for name, keys in channels.items()}


def channel_of(config: Config, name: str) -> NoticeChannel:
    """Return the channel of that name. Raises `Refused`, with the nearest name, where the configuration has none."""
    channels = channels_of(config)
    if name not in channels:
        todo = "Name a section [notices.NAME] of the configuration"
        raise Refused(f'There is no channel "{name}"', nearest(name, channels), todo)
    return channels[name]


def channels_at(config: Config, place: str) -> tuple[NoticeChannel, ...]:
    """Return the channels at `place`, which is `source` or the name of a target."""
    return tuple(channel for channel in channels_of(config).values() if channel.at == place)
