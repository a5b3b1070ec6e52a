"""The settings of a metastore, as Hive's own properties and files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from calque.model.access import MetastoreAccess

_MESSAGING = "org.apache.hadoop.hive.metastore.messaging"
_LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"
_NEVER_SECONDS = 10 * 365 * 24 * 3600

_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.metastore.name = org.apache.hadoop.hive.metastore.HiveMetaStore
logger.metastore.level = info
"""


@dataclass(frozen=True, slots=True)
class KerberosService:
    """The identity of a server for Kerberos: its principal, the keytab with its keys, and the krb5.conf of Java."""

    principal: str
    keytab: Path
    configuration: Path


@dataclass(frozen=True, slots=True)
class MetastoreSettings:
    """The kind of metastore to run.

    `message_format` is how events are written to the log; 3.1.3 knows `json` only. `stock`, for 4.2.0 only, leaves the
    metadata transformer and the gathering of statistics at the server's defaults. `listener` says what writes the log:
    a listener inside each transaction, one after it (events can be lost), or none. `event_ttl` is the seconds after
    which the server removes events; 0 keeps them for ever. `cleaner_interval` is the seconds between the removals.
    `http`, for 4.2.0 only, means Thrift in HTTP's requests. `keystore` is a PKCS12 file with a certificate and its key,
    and the file's password, for TLS. `kerberos`, for 3.1.3 only, makes a server that takes only tickets. `proxy_users`
    have proxy privilege, and so may read the log. `extra` are further properties, which win over all others.
    """

    version: Literal["3.1.3", "4.2.0"] = "3.1.3"
    message_format: Literal["json", "gzip"] = "json"
    stock: bool = False
    listener: Literal["transactional", "plain", "none"] = "transactional"
    heap_mb: int = 512
    event_ttl: int = 0
    cleaner_interval: float = 1.0
    http: bool = False
    keystore: tuple[Path, str] | None = None
    kerberos: KerberosService | None = None
    proxy_users: tuple[str, ...] = field(default_factory=lambda: (MetastoreAccess().user_name(),))
    extra: Mapping[str, str] = field(default_factory=dict)

    def uri(self, port: int) -> str:
        """Return the address of a server on that port."""
        if self.http:
            return f"{'https' if self.keystore else 'http'}://127.0.0.1:{port}/metastore"
        return f"thrift://127.0.0.1:{port}"


def properties(settings: MetastoreSettings, directory: Path, database: Mapping[str, str]) -> dict[str, str]:
    """Return all properties of a metastore whose files lie in `directory`. `database` has the keys url, user and
    password."""
    return {
        **_common(settings, directory),
        **_database(database),
        **(_hive_3() if settings.version == "3.1.3" else _hive_4(settings)),
        **settings.extra,
    }


def write_configuration(properties: Mapping[str, str], folder: Path) -> None:
    """Write into `folder` the files that a metastore looks for on its class path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("metastore-site.xml", "hive-site.xml", "core-site.xml"):
        (folder / name).write_text(site(properties))
    for name in ("log4j2.properties", "metastore-log4j2.properties", "hive-log4j2.properties"):
        (folder / name).write_text(_LOGGING)


def site(properties: Mapping[str, str]) -> str:
    """Return the content of one of Hadoop's configuration files."""
    entries = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    )
    return f"<configuration>\n{entries}</configuration>\n"


def _common(settings: MetastoreSettings, directory: Path) -> dict[str, str]:
    common = {
        "fs.defaultFS": "file:///",
        "metastore.warehouse.dir": (directory / "warehouse").as_uri(),
        "metastore.warehouse.external.dir": (directory / "external").as_uri(),
        "hive.metastore.warehouse.external.dir": (directory / "external").as_uri(),
        "metastore.repl.cm.enabled": "true",
        "metastore.repl.cmrootdir": (directory / "change_manager").as_uri(),
        "metastore.dml.events": "true",
        "metastore.event.db.listener.timetolive": f"{settings.event_ttl or _NEVER_SECONDS}s",
        "metastore.execute.setugi": "true",
        "metastore.hmshandler.retry.attempts": "1",
        "metastore.async.log.enabled": "false",
    }
    for prefix in ("", "hive.", "metastore."):
        common[f"{prefix}metastore.event.db.notification.api.auth"] = "true"
    for user in settings.proxy_users:
        common |= {f"hadoop.proxyuser.{user}.{whom}": "*" for whom in ("hosts", "groups")}
    if settings.listener == "transactional":
        common["metastore.transactional.event.listeners"] = _LISTENER
    elif settings.listener == "plain":
        common["metastore.event.listeners"] = _LISTENER
    if settings.keystore is not None:
        path, password = settings.keystore
        common |= {
            "metastore.use.SSL": "true",
            "metastore.keystore.path": str(path),
            "metastore.keystore.password": password,
            "metastore.keystore.type": "PKCS12",
            "metastore.keymanagerfactory.algorithm": "SunX509",
        }
    if settings.kerberos is not None:
        common |= {
            "hadoop.security.authentication": "kerberos",
            # Users of all realms go by the first part of their principals.
            "hadoop.security.auth_to_local": "RULE:[1:$1] RULE:[2:$1]",
            # The system does not know the principal's user, so Hadoop could not find groups.
            "hadoop.user.group.static.mapping.overrides": f"{settings.kerberos.principal.partition('/')[0]}=hadoop",
            "metastore.sasl.enabled": "true",
            "metastore.kerberos.keytab.file": str(settings.kerberos.keytab),
            "metastore.kerberos.principal": settings.kerberos.principal,
        }
    if not settings.stock:
        common["metastore.stats.autogather"] = "false"
    return common


def _database(database: Mapping[str, str]) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": database["url"],
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": database["user"],
        "javax.jdo.option.ConnectionPassword": database["password"],
        "datanucleus.connectionPoolingType": "HikariCP",
        "datanucleus.schema.autoCreateAll": "false",
        "metastore.try.direct.sql": "true",
    }


def _hive_3() -> dict[str, str]:
    return {
        "metastore.event.message.factory": f"{_MESSAGING}.json.JSONMessageFactory",
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.storage.schema.reader.impl": "org.apache.hadoop.hive.metastore.DefaultStorageSchemaReader",
        "metastore.schema.verification": "true",
        # The default names a class that the distribution does not contain.
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    }


def _hive_4(settings: MetastoreSettings) -> dict[str, str]:
    encoder = "json.JSONMessageEncoder" if settings.message_format == "json" else "json.gzip.GzipJSONMessageEncoder"
    hive_4 = {
        "metastore.event.message.factory": f"{_MESSAGING}.{encoder}",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.max.event.response": "1000000",
        "metastore.schema.verification": "false",
        "metastore.housekeeping.threads.on": "false",
        "metastore.housekeeping.leader.election": "host",
        "metastore.housekeeping.leader.hostname": "none",
        # With a change manager this setting counts instead of `metastore.event.db.listener.timetolive`.
        "metastore.repl.event.db.listener.timetolive": f"{settings.event_ttl or _NEVER_SECONDS}s",
        "metastore.event.db.listener.clean.startup.wait.interval": "0s",
        "metastore.event.db.listener.clean.interval": f"{round(settings.cleaner_interval * 1000)}ms",
    }
    if settings.http:
        hive_4["metastore.server.thrift.transport.mode"] = "http"
    if not settings.stock:
        hive_4["metastore.metadata.transformer.class"] = " "
    return hive_4
