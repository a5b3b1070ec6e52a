"""The live objects of each channel of notices, and what retention keeps for channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from calque.config.units import seconds
from calque.engine.sides.sides import SourceSide
from calque.model.ledger import TableRow
from calque.model.names import EventId, TableName
from calque.model.secrets import Options
from calque.model.state_places import ChannelPlaces
from calque.model.tls import Tls
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.marks.wiring import mark_store
from calque.plugins.notices.config import TOPICS, NoticeChannel, channel_of, channels_of
from calque.plugins.notices.core import channel as core
from calque.plugins.notices.core.selection import Selection
from calque.plugins.notices.core.topics import TopicTemplate
from calque.plugins.notices.engine.keep_keys import retain_keys
from calque.plugins.notices.engine.ordered_publisher import OrderedPublisher
from calque.plugins.notices.engine.positions import KeyRecords, Position
from calque.plugins.notices.engine.source_feed import SourceFeed
from calque.plugins.notices.engine.target_feed import TargetFeed, TargetMarks
from calque.plugins.notices.ports import ForwardingBroker, NoticeBroker
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.runtime import Runtime
from calque.wiring.source import SourceWiring
from calque.wiring.state_folder import StateFolder
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring

Feed = SourceFeed | TargetFeed


@dataclass(slots=True)
class ChannelWiring:
    """The live objects of one channel, made when they are asked for. `target` is None for a channel at the source."""

    plug: NoticeChannel
    source: SourceWiring
    target: TargetWiring | None
    folder: StateFolder
    runtime: Runtime

    @property
    def places(self) -> ChannelPlaces:
        return ChannelPlaces(self.plug.name)

    def broker(self) -> NoticeBroker:
        """Open a new connection to the channel's broker."""
        return self.runtime.guard.wrapped("broker", broker_of(self.plug), ForwardingBroker)

    def kafka_topic(self) -> Topic | None:
        """Return the address and options of the channel's Kafka brokers; None where the broker is not Kafka."""
        url, options = self.plug.keys.url, self.plug.keys.options
        if url.protocol != "kafka":
            return None
        return Topic(url.brokers, self.plug.name, {key: value for key, value in options.items() if key not in TOPICS})

    def channel(self) -> core.Channel:
        keys, source = self.plug.keys, self.source.plug
        name_at_target = same_name if self.target is None else self.target.admission().name_at_target
        selection = Selection.of(keys.types, keys.include, keys.exclude)
        return core.Channel(
            self.plug.name,
            source.name,
            self.plug.at,
            self.topics(),
            selection,
            keys.format,
            ",".join(source.keys.metastore),
            name_at_target,
        )

    def topics(self) -> TopicTemplate:
        return TopicTemplate(self.plug.keys.topic, self.source.plug.name)

    def feed(self, broker: NoticeBroker, first: EventId, target_marks: TargetMarks | None) -> Feed:
        """Make the feed of the channel. `first` is the event after which the source's journal began; `target_marks`
        judges which marks are done at the channel's target."""
        publisher = OrderedPublisher(self.channel(), broker, self.tables)
        records, places, side = self.folder.control, self.places, self.source.side()
        keys = KeyRecords(records, places.keys_record, self.source.places.notice_keys_record)
        if self.target is None:
            return SourceFeed(side, mark_store(self.source), publisher, records, places.position_record, keys, first)
        return TargetFeed(
            side,
            self.plug.at,
            self.target.ledger(),
            publisher,
            records,
            places.position_record,
            keys,
            first,
            marks=mark_store(self.source),
            target_marks=target_marks,
        )

    def tables(self) -> Iterable[TableName]:
        """Return all tables that are there now: of the target's ledger, or of the source's metastore for a channel at
        the source."""
        if self.target is not None:
            rows = self.target.ledger().tables().values()
            return [row.name for row in rows if isinstance(row, TableRow)]
        catalog = self.source.side().catalog
        return [TableName(database, table) for database in catalog.databases() for table in catalog.tables(database)]


def channels(wiring: Wiring) -> Mapping[str, ChannelWiring]:
    """Return the wiring of each channel, by the channel's name, in the order of the configuration. It is made once for
    each `wiring`."""
    return wiring.kept(wired_channels)


def wired_channels(wiring: Wiring) -> Mapping[str, ChannelWiring]:
    return {name: wired_channel(wiring, plug) for name, plug in channels_of(wiring.config).items()}


def wired_channel(wiring: Wiring, plug: NoticeChannel) -> ChannelWiring:
    target = None if plug.is_at_source() else wiring.targets[plug.at]
    return ChannelWiring(plug, wiring.sources[plug.source], target, wiring.folder, wiring.runtime)


def named_channel(wiring: Wiring, name: str) -> ChannelWiring:
    """Return the wiring of the channel of that name. Raises `Refused` where the configuration has none."""
    return channels(wiring)[channel_of(wiring.config, name).name]


def broker_of(plug: NoticeChannel) -> NoticeBroker:
    """Make the broker that the channel's address names."""
    url, options = plug.keys.url, plug.keys.options
    section = f"[notices.{plug.name}]"
    match url.protocol:
        case "kafka":
            from calque.plugins.kafka.adapters.client.connection import Connection
            from calque.plugins.notices.adapters.kafka.broker import KafkaNoticeBroker
            from calque.plugins.notices.adapters.kafka.topics import MissingTopics

            settings: Options = {key: value for key, value in options.items() if key not in TOPICS}
            copies = options.get("topic.copies")
            missing = MissingTopics(
                int(str(options.get("topic.partitions", 1))), None if copies is None else int(str(copies))
            )
            return KafkaNoticeBroker(Connection(url.brokers, settings, section), missing)
        case "stomp":
            from calque.plugins.notices.adapters.stomp.address import StompAddress
            from calque.plugins.notices.adapters.stomp.broker import StompNoticeBroker

            password = options.get("password")
            assert not isinstance(password, str)
            hosts = tuple(
                (host.strip("[]"), int(port))
                for host, _, port in (one.rpartition(":") for one in url.brokers.split(","))
            )
            address = StompAddress(hosts, url.user, password, tls_of(options), section)
            return StompNoticeBroker(address, seconds(str(options.get("keep", "7d"))))
        case other:
            assert_never(other)


def tls_of(options: Options) -> Tls | None:
    """Return the TLS settings of a STOMP channel; None where no option asks for TLS."""
    if not any(key == "tls" or key.startswith("tls.") for key in options):
        return None
    ca, certificate, key = (str(options.get(f"tls.{name}", "")) for name in ("ca", "certificate", "key"))
    return Tls(ca, certificate, key, options.get("tls") != "unverified")


def same_name(table: TableName) -> TableName:
    return table


def keep_keys(source: SourceWiring, side: SourceSide, begin: EventId) -> None:
    """Record the keys of the source's tables for channels that come later; see `retain_keys`."""
    retain_keys(side, source.folder.control, source.places.notice_keys_record, begin, source.plug.journal.retention)


def sent_epoch(wiring: Wiring, target: str) -> int | None:
    """Return the last epoch that all channels at the target have told of; None where no channel that ever ran is there.
    A channel that never ran wants nothing of the past."""
    places = (channel.places for channel in channels(wiring).values() if channel.plug.at == target)
    records = [record for one in places if (record := wiring.control.read(one.position_record)) is not None]
    return min((Position.of(record).epoch for record in records), default=None)


RETENTION = RetentionKind(before_events=keep_keys, sent_epoch=sent_epoch)
