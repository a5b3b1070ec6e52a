"""Real metastores that ask who calls them, and how."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.engine.check.check_target import TEXT
from calque.errors import AccessRefused, Unavailable
from calque.model.access import Login, MetastoreAccess, NoLogin, PasswordLogin, TokenLogin
from calque.model.hive import Database, Table
from calque.model.names import TableName
from calque.model.secrets import FileSecret
from calque.model.tls import Tls
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.authority import Authority
from support.services.directory import USER_PATTERN, Directory
from support.services.servers import SETTINGS

VERSIONS = ("3.1.3", "4.2.0")
PASSWORD = "of-calque-9c41"
MYSELF = MetastoreAccess().user_name()
Start = Callable[[MetastoreSettings], Metastore]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """A server with settings of its own, which all tests of the module share that ask for the same."""
    started: dict[str, Metastore] = {}

    def metastore(settings: MetastoreSettings) -> Metastore:
        key = repr(settings)
        if key not in started:
            started[key] = Metastore.start(settings, tmp_path_factory.mktemp("metastore"))
        return started[key]

    yield metastore
    for server in started.values():
        server.stop()


@dataclass(frozen=True)
class Secrets:
    """Files that tests put passwords and tokens into, certificates, and what the servers know of all that."""

    folder: Path
    authority: Authority
    keystore: tuple[Path, str]
    signer: RSAKey

    @property
    def tls(self) -> Tls:
        return Tls(self.authority.ca)

    def file(self, name: str, value: str) -> FileSecret:
        path = self.folder / name
        path.write_text(f"{value}\n")
        path.chmod(0o600)
        return FileSecret(str(path))

    def password(self, value: str = PASSWORD) -> PasswordLogin:
        return PasswordLogin(self.file("password" if value == PASSWORD else "wrong", value))

    def token(self, user: str, seconds: int = 3600) -> TokenLogin:
        claims = {"sub": user, "iat": int(time.time()), "exp": int(time.time()) + seconds}
        token = jwt.encode({"alg": "RS256", "kid": "signer"}, claims, self.signer)
        return TokenLogin(self.file(f"token-{user}-{seconds}", token))

    def asking_for_a_password(self) -> MetastoreSettings:
        """Within TLS. Such a server knows no users but its own."""
        known = {"username": "calque", "password": PASSWORD}
        extra = {f"metastore.authentication.config.{key}": value for key, value in known.items()}
        extra |= {"metastore.authentication": "CONFIG", "metastore.execute.setugi": "false"}
        return MetastoreSettings(version="4.2.0", keystore=self.keystore, extra=extra)

    def asking_for_a_token(self) -> MetastoreSettings:
        """Over HTTPS."""
        keys = self.folder / "jwks.json"
        keys.write_text(json.dumps({"keys": [self.signer.as_dict(private=False)]}))
        extra = {"metastore.authentication": "JWT", "metastore.authentication.jwt.jwks.url": keys.as_uri()}
        return MetastoreSettings(version="4.2.0", http=True, keystore=self.keystore, extra=extra)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Secrets:
    folder = tmp_path_factory.mktemp("secrets")
    authority = Authority(folder)
    signer = RSAKey.generate_key(2048, {"kid": "signer", "use": "sig", "alg": "RS256"})
    return Secrets(folder, authority, authority.keystore("127.0.0.1"), signer)


Call = Callable[..., Client]
"""The address, the user, the login and the TLS of a client."""


@pytest.fixture
def client() -> Iterator[Call]:
    made: list[Client] = []

    def call(uri: str, user: str = "", login: Login = NoLogin(), tls: Tls | None = None) -> Client:  # noqa: B008
        made.append(Client(uri, MetastoreAccess(user, login, tls), connect_timeout=20, call_timeout=20))
        return made[-1]

    yield call
    for each in made:
        each.close()


def calque(command: str, config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "calque.cli", command, *options, "-c", str(config)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=200, cwd=config.parent, check=False)


def configuration(folder: Path, source: str, target: str) -> Path:
    """Each side by the lines below its section's name."""
    file = folder / "calque.toml"
    include = 'include = ["sales.*"]'
    file.write_text(f'[source]\nname = "hq"\n{source}\n[targets.dr]\nwarehouse = "dr"\n{include}\n{target}\n')
    return file


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(AccessRefused) as refused:
        call()
    return str(refused.value)


# Users


@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_is_read_by_a_user_with_the_privilege_alone(start: Start, client: Call, version: str) -> None:
    uri = start(SETTINGS[f"source-{version[0]}"]).uri
    assert HiveLog(client(uri)).current() == 0
    stranger = client(uri, "stranger")
    assert HiveReader(stranger).databases() == ("default",)
    for ask in (HiveLog(stranger).current, lambda: HiveLog(stranger).read(0, 10)):
        with pytest.raises(AccessRefused) as refused:
            ask()
        assert refused.value.what == f"The metastore at {uri} does not let stranger read its notification log"
        assert "hadoop.proxyuser.stranger.hosts" in refused.value.todo


def test_a_run_ends_with_what_to_grant_in_one_line(start: Start, tmp_path: Path) -> None:
    uri = start(SETTINGS["source-4"]).uri
    config = configuration(tmp_path, f'metastore = "{uri}"\nuser = "stranger"', f'metastore = "{uri}"')
    config.write_text(config.read_text() + 'rename = { "sales" = "sales_dr" }\n')
    ended = calque("run", config)
    assert ended.returncode == 65, ended.stderr
    *_, last = ended.stderr.splitlines()
    assert last == (
        f"calque: The metastore at {uri} does not let stranger read its notification log. "
        "hive.metastore.event.db.notification.api.auth is true there, and the user has no proxy privilege. "
        "Set hadoop.proxyuser.stranger.hosts to * or the addresses of this host, and "
        "hadoop.proxyuser.stranger.groups to *, in its core-site.xml, or that property to false in its hive-site.xml, "
        "and start it again."
    )


# TLS


@pytest.mark.parametrize("version", one_a_day(VERSIONS[::-1], seed()))
def test_a_server_with_tls_is_called_by_who_trusts_it(
    start: Start, client: Call, secrets: Secrets, version: str
) -> None:
    settings = MetastoreSettings("3.1.3", keystore=secrets.keystore)
    uri = start(settings if version == "3.1.3" else secrets.asking_for_a_password()).uri
    login, user = (NoLogin(), "") if version == "3.1.3" else (secrets.password(), "calque")
    assert HiveLog(client(uri, user, login, secrets.tls)).current() >= 0
    said = refusal(HiveLog(client(uri, user, login, Tls())).current)
    assert said.startswith(f"The certificate of the metastore at {uri} is from nobody that calque trusts.")
    said = refusal(HiveLog(client(uri.replace("127.0.0.1", "localhost"), user, login, secrets.tls)).current)
    assert "is for other names" in said
    with pytest.raises(Unavailable, match="a server that wants TLS, a password, Kerberos or HTTP breaks off like this"):
        HiveLog(client(uri)).current()


# Passwords


def test_a_password_of_the_server_s_own_is_sent_until_it_is_refused(
    start: Start, client: Call, secrets: Secrets
) -> None:
    server = start(secrets.asking_for_a_password())
    assert HiveLog(client(server.uri, "calque", secrets.password(), secrets.tls)).current() >= 0
    file, negotiated = secrets.folder / "wrong", refused_logins(server)
    wrong = secrets.password("wrong")
    said = [refusal(HiveLog(client(server.uri, "calque", wrong, secrets.tls)).current) for _ in range(3)]
    why = "Error validating the login."
    todo = f"Put the right one into the file {file}, or correct the user; it is sent again when it has changed."
    assert said == 3 * [f"The metastore at {server.uri} refuses the password of calque. {why} {todo}"]
    assert refused_logins(server) == negotiated + 1
    file.write_text(PASSWORD)
    assert HiveLog(client(server.uri, "calque", wrong, secrets.tls)).current() >= 0
    assert "refuses the password of eve" in refusal(HiveLog(client(server.uri, "eve", wrong, secrets.tls)).current)
    assert PASSWORD not in (server.directory / "metastore.log").read_text()


def refused_logins(server: Metastore) -> int:
    return (server.directory / "metastore.log").read_text().count("SASL negotiation failure")


def test_a_password_of_a_directory_is_taken_and_the_log_is_for_the_server_s_own_user(
    start: Start, client: Call, secrets: Secrets, tmp_path: Path
) -> None:
    with Directory({"calque": PASSWORD}, tmp_path) as directory:
        ldap = {"metastore.authentication.ldap.url": directory.url}
        ldap |= {"metastore.authentication.ldap.userDNPattern": USER_PATTERN}
        ldap |= {"metastore.authentication": "LDAP", "metastore.execute.setugi": "false"}
        uri = start(MetastoreSettings("4.2.0", proxy_users=("calque",), extra=ldap)).uri
        known = client(uri, "calque", secrets.password())
        assert HiveReader(known).databases() == ("default",)
        said = refusal(HiveLog(known).current)
        assert said.startswith(f"The metastore at {uri} does not let the user that it runs as read its notification")
        said = refusal(HiveLog(client(uri, "calque", secrets.password("another"))).current)
        assert said.startswith(f"The metastore at {uri} refuses the password of calque.")


def test_a_server_that_takes_no_passwords_is_unavailable_and_says_what_was_tried(
    start: Start, client: Call, secrets: Secrets
) -> None:
    with pytest.raises(Unavailable, match='auth = "plain" asks for it'):
        HiveLog(client(start(SETTINGS["source-3"]).uri, "calque", secrets.password())).current()


# HTTP


def test_a_token_says_who_calls(start: Start, client: Call, secrets: Secrets) -> None:
    uri = start(secrets.asking_for_a_token()).uri
    assert uri.startswith("https://")
    for login in (secrets.token(MYSELF), secrets.token(MYSELF, 1800)):
        log = HiveLog(client(uri, login=login, tls=secrets.tls))
        assert [log.current() >= 0 for _ in range(3)] == 3 * [True]
    stranger = client(uri, login=secrets.token("stranger"), tls=secrets.tls)
    assert "default" in HiveReader(stranger).databases()
    assert "does not let the user of the token read its notification log" in refusal(HiveLog(stranger).current)
    said = refusal(HiveLog(client(uri, login=secrets.token(MYSELF, -3600), tls=secrets.tls)).current)
    assert said.startswith(f"The metastore at {uri} refuses the token. Authentication error: Failed to validate JWT")
    assert "is from nobody that calque trusts" in refusal(HiveLog(client(uri, login=secrets.token(MYSELF))).current)
    said = refusal(HiveLog(client(uri, tls=secrets.tls)).current)
    assert said.startswith(f"The metastore at {uri} refuses the user {MYSELF}.")


@pytest.mark.prove
def test_without_tokens_the_user_s_name_is_believed(start: Start, client: Call) -> None:
    uri = start(MetastoreSettings("4.2.0", http=True)).uri
    assert HiveLog(client(f"http://127.0.0.1:1/metastore,{uri}")).current() == 0
    assert "does not let stranger read" in refusal(HiveLog(client(uri, "stranger")).current)
    said = refusal(HiveLog(client(uri.replace("metastore", "elsewhere"))).current)
    assert said.startswith(f"There is no metastore at {uri.replace('metastore', 'elsewhere')}.")


# calque


@pytest.mark.parametrize("direction", one_a_day(["from Thrift to HTTP", "from HTTP to Thrift"], seed()))
def test_a_run_replicates_by_tls_with_a_password_and_a_token(
    start: Start, secrets: Secrets, tmp_path: Path, direction: str
) -> None:
    """The names differ for each direction, as the servers are the same."""
    servers = start(secrets.asking_for_a_password()), start(secrets.asking_for_a_token())
    logins = secrets.password(), secrets.token(MYSELF)
    clients = [
        HiveClient(servers[0].uri, access=MetastoreAccess("calque", logins[0], secrets.tls)),
        HiveClient(servers[1].uri, access=MetastoreAccess("", logins[1], secrets.tls)),
    ]
    tls = f'tls = {{ ca = "{secrets.authority.ca}" }}'
    lines = [
        f'metastore = "{servers[0].uri}"\nauth = "plain"\nuser = "calque"\npassword_file = "{logins[0].password.path}"',
        f'metastore = "{servers[1].uri}"\ntoken_file = "{logins[1].token.path}"',
    ]
    from_http = direction == "from HTTP to Thrift"
    if from_http:
        clients.reverse()
        lines.reverse()
    source, target = clients
    write_sales(source, tmp_path, renamed := "north" if from_http else "south")
    config = configuration(tmp_path, f"{lines[0]}\n{tls}", f"{lines[1]}\n{tls}")
    config.write_text(config.read_text().replace('["sales.*"]', f'["{renamed}.*"]'))
    checked = calque("check", config)
    assert checked.returncode == 0, checked.stdout
    ended = calque("run", config, "--until", "head")
    assert ended.returncode == 0, ended.stderr
    replica = target.catalog.table(TableName(renamed, "orders"))
    assert replica is not None
    assert (tmp_path / "dr" / f"{renamed}.db" / "orders" / "rows").read_text() == "1\n"
    verified = calque("verify", config)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    values = [Path(secret.path).read_text().strip() for secret in (logins[0].password, logins[1].token)]
    said = checked.stdout + checked.stderr + ended.stdout + ended.stderr + verified.stdout + verified.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in left if any(value.encode() in path.read_bytes() for value in values)] == []
    assert not any(value in said for value in values)
    for each in clients:
        each.close()


def write_sales(source: HiveClient, folder: Path, database: str) -> None:
    """A database with a table of one file."""
    home = folder / "source"
    (home / "orders").mkdir(parents=True)
    (home / "orders" / "rows").write_text("1\n")
    source.create_database(Database(database, location=home.as_uri()))
    storage = replace(TEXT, location=(home / "orders").as_uri())
    source.create_table(
        Table("orders", database, storage=storage, parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE")
    )


def test_a_run_with_a_wrong_password_ends_at_once_having_sent_it_once(
    start: Start, secrets: Secrets, tmp_path: Path
) -> None:
    server = start(secrets.asking_for_a_password())
    negotiated = refused_logins(server)
    wrong = secrets.file("mistyped", "mistyped")
    lines = f'metastore = "{server.uri}"\nuser = "calque"\nauth = "plain"\npassword_file = "{wrong.path}"'
    tls = f'tls = {{ ca = "{secrets.authority.ca}" }}'
    other = start(SETTINGS["source-3"]).uri
    ended = calque("run", configuration(tmp_path, f"{lines}\n{tls}", f'metastore = "{other}"'))
    assert ended.returncode == 65, ended.stderr
    *_, last = ended.stderr.splitlines()
    assert last.startswith(f"calque: The metastore at {server.uri} refuses the password of calque.")
    assert refused_logins(server) == negotiated + 1
