"""The command `calque check`, which looks for what is wrong with the configuration and the world that it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared

if TYPE_CHECKING:
    from collections.abc import Collection

    from calque.config import Config
    from calque.config.checks import Endpoint
    from calque.engine.check.findings import Finding, Findings
    from calque.engine.check.sides import Target
    from calque.extension import App
    from calque.wiring.source import SourceWiring
    from calque.wiring.wiring import Wiring


@click.command("check", epilog=examples("calque check", "calque check -c dr.toml --master spark://hq:7077 --json"))
@click.option("--master", metavar="URL", default="", help="What spark-submit is told: where Spark's tasks will run.")
@shared
@click.pass_obj
def command(settings: CommandSettings, master: str) -> int:
    """Validate the configuration and the world.

    Looks at metastores, the log's listener, permissions, storage, compare-and-swap, tables that can't be replicated and
    shared or nested locations; prints what is wrong and how to mend it. With --master of a cluster also which places
    have to be on storage that its machines share. Exit 75 when a server or a place can't be reached, 65 when the
    configuration or a server must be changed.
    """
    return run(settings, settings.load_any(), master)


def run(settings: CommandSettings, config: Config, master: str = "") -> int:
    from calque.commands.output import print_json
    from calque.errors import Refused, Unavailable, print_error

    findings = look(config, settings.app, master)
    if settings.json:
        print_json({"ok": findings.ok, "findings": [finding.document() for finding in findings.entries]})
    else:
        print_findings(findings)
    if findings.unreachable:
        print_error("Not everything can be reached", "See the findings", "Check again when it answers")
        return Unavailable.exit_code
    if not findings.ok:
        print_error("Something must be changed", "See the findings that are errors", "Mend them, and check again")
        return Refused.exit_code
    return 0


def look(config: Config, app: App, master: str = "") -> Findings:
    """Check the world of a configuration, and return the findings. `master` is the Spark master on which its jobs run;
    empty for this machine."""
    from calque.engine.check.findings import Findings

    wiring, findings = app.wiring(config), Findings()
    lacking = app.missing_extras(config)
    for refusal in lacking:
        findings.refused("configuration", refusal)
    if lacking:
        return findings
    if config.sources or not config.alone:
        look_at_host(wiring, findings)
    if config.sources:
        look_at_deployment(wiring, findings, app, master)
    for check in app.checks():
        check(wiring, findings)
    look_at_secrets(config, findings)
    if config.sources:
        look_at_endpoint(wiring, findings)
    return findings


def look_at_host(wiring: Wiring, findings: Findings) -> None:
    """Add what `calque run` would meet on this host."""
    from calque.engine.check.host import Host, check_host

    check_host(Host(wiring.folder.folders()), findings)


def look_at_deployment(wiring: Wiring, findings: Findings, app: App, master: str) -> None:
    """Add what is found of the sources, their targets, the journals and the state."""
    from functools import partial

    from calque.config.conflicts import taking_nothing, unsupported
    from calque.engine.check.check import check
    from calque.engine.check.shared_storage import runs_elsewhere
    from calque.engine.check.sides import Source
    from calque.errors import CalqueError
    from calque.wiring.storage_probes import state_probe

    config = wiring.config
    for refusal in (*unsupported(config), *taking_nothing(config)):
        findings.refused("configuration", refusal)
    for name, source_wiring in wiring.sources.items():
        side, keys = source_wiring.side(), source_wiring.plug.keys
        source = Source(
            source_wiring.server() if source_wiring.plug.catalog is None else None,
            side.log,
            side.catalog,
            side.storage,
            allow_weak_log=keys.allow_weak_log,
            why_not_linked=source_wiring.why_not_linked if keys.pin == "auto" else None,
            table_looks=tuple(partial(look, wiring) for look in app.table_checks()),
            shared_storage=runs_elsewhere(master),
            why_not_read=source_wiring.why_not_read(),
            scans=keys.scans_some(),
        )
        found = check(source, [target_of(wiring, target, app) for target in config.targets_of(name)])
        look_at_journal(source_wiring, found)
        findings.add_all(found, f" {name}" if len(wiring.sources) > 1 else "")
    try:
        state_probe(config.state, wiring.runtime.kinds.file_systems)
    except CalqueError as error:
        findings.refused("state", error)
    if runs_elsewhere(master):
        look_at_shared_storage(config, findings)
    look_at_identity(wiring, findings)


def look_at_identity(wiring: Wiring, findings: Findings) -> None:
    """Add a finding where another metastore or directory answers than the deployment remembers, and a warning where
    another metastore's replicas lie below a target's directories."""
    from calque.control.identity import require_source, require_target
    from calque.core.records.identity import shared_directory
    from calque.engine.check.findings import Severity
    from calque.errors import AccessRefused, Refused, Unavailable

    for name, source in wiring.sources.items():
        try:
            require_source(wiring, source)
        except (Refused, AccessRefused) as error:
            findings.refused(f"source {name}" if len(wiring.sources) > 1 else "source", error)
        except Unavailable:
            # Who looked at the source, or at the state, has told of it.
            continue
    for name in wiring.config.targets:
        where = f"target {name}"
        try:
            shared = shared_directory(require_target(wiring, name))
        except (Refused, AccessRefused) as error:
            if error.what not in [finding.what for finding in findings.entries]:
                findings.refused(where, error)
        except Unavailable:
            # Who looked at the target, or at the state, has told of it.
            continue
        else:
            if shared is not None:
                findings.add(where, Severity.WARNING, shared.what, shared.why, shared.todo)


def look_at_shared_storage(config: Config, findings: Findings) -> None:
    """Add what the configuration has on disks that Spark's other machines may not see."""
    from calque.config.secret_keys import secret_files
    from calque.engine.check.shared_storage import check_secrets, check_state, check_warehouse

    check_state(config.state.table_folder(), findings)
    for name, target in config.targets.items():
        keys = target.keys
        if target.admission().copies_some:
            locations = dict.fromkeys((keys.warehouse, keys.external_base, *keys.locations.values()))
            check_warehouse(f"target {name}", filter(None, locations), findings)
    check_secrets([str(file.path) for file in secret_files(config.sections())], findings)


def look_at_secrets(config: Config, findings: Findings) -> None:
    """Add a warning for each file of secrets that every user of this host can read."""
    from calque.config.secret_keys import secret_files
    from calque.engine.check.findings import Severity

    for file in secret_files(config.sections()):
        if file.others_may_read():
            what, todo = f"Every user of this host can read {file.path}", f"Say `chmod o-r {file.path}`"
            findings.add("configuration", Severity.WARNING, what, "The value of a secret is in it", todo)


def look_at_endpoint(wiring: Wiring, findings: Findings) -> None:
    """Add a finding where health and metrics can't be served at the configured address, unless a process of calque's
    serves them there; and a warning where tokens go there without TLS."""
    from socket import gethostname

    from calque.config.serve_keys import is_loopback
    from calque.control.processes import processes
    from calque.engine.check.findings import Severity
    from calque.errors import CalqueError
    from calque.serve.http import DEFAULT, require_free

    endpoint = wiring.config.serve.address
    if endpoint is not None and not is_loopback(endpoint.host) and wiring.config.serve.tls.tls() is None:
        what, why = f"Tokens go to {endpoint} in the clear", "[serve] has an address beyond this host, and no tls"
        findings.add("configuration", Severity.WARNING, what, why, "Write tls = { certificate = …, key = … } there")
    own_ports = {
        process.serves.rpartition(":")[2] for process in processes(wiring.control) if process.host == gethostname()
    }
    if wiring.config.serve.is_default():
        look_at_default_address(DEFAULT, own_ports, findings)
    if endpoint is None or str(endpoint.port) in own_ports:
        return
    try:
        require_free(endpoint)
    except CalqueError as error:
        findings.refused("configuration", error)


def look_at_default_address(default: Endpoint, own_ports: Collection[str], findings: Findings) -> None:
    """Add a warning where a process of another deployment has the default address, and this one gets any free port.
    `own_ports` are those of this deployment's processes."""
    from calque.engine.check.findings import Severity
    from calque.errors import CalqueError
    from calque.serve.http import require_free

    if str(default.port) in own_ports:
        return
    try:
        require_free(default)
    except CalqueError:
        what = f"{default} is taken: `calque run` serves health and metrics at another port"
        why = f"A Prometheus scrape of {default.port} reads what listens there, such as another deployment"
        findings.add("configuration", Severity.WARNING, what, why, "Write [serve] address with a port of its own")


def look_at_journal(source: SourceWiring, findings: Findings) -> None:
    """Add a finding where the configuration names another journal than the one that exists."""
    from calque.errors import CalqueError

    try:
        source.journal_location.require()
    except CalqueError as error:
        findings.refused("journal", error)


def target_of(wiring: Wiring, name: str, app: App) -> Target:
    from functools import partial
    from secrets import token_hex

    from calque.engine.check.sides import Target
    from calque.engine.lease.fence import NoFence
    from calque.model.names import OURS
    from calque.wiring.storage_probes import write_probe

    target = wiring.target(name)
    side, probe = target.side_behind(NoFence()), partial(write_probe, target.systems())
    scratch = f"{OURS}_probe_{token_hex(6)}"
    looks = tuple(partial(look, wiring, name) for look in app.target_checks())
    admission = target.plug.admission()
    why_not_native = partial(target.why_not_native, NoFence()) if admission.has_native or admission.has_auto else None
    return Target(side.policy, target.server(), side.catalog, side.storage, probe, scratch, looks, why_not_native)


WORDS = re.compile(r"(?!calque\b)[a-z]+,? (?!=)")
"""The beginning of a sentence, which gets a capital letter. A name of calque's own or a place does not match."""


def print_findings(findings: Findings) -> None:
    """Print the findings for people, those that are equal but for where they are once, and none that is as expected."""
    from calque.commands.output import print_line

    places_of: dict[tuple[str, str], list[str]] = {}
    for finding in findings.entries:
        if not finding.expected:
            places_of.setdefault((finding.severity.value, text_of(finding)), []).append(finding.where)
    lines: dict[tuple[str, ...], list[str]] = {}
    for (severity, text), places in places_of.items():
        lines.setdefault(tuple(dict.fromkeys(places)), []).append(f"  {severity}: {text}")
    for shared_places, texts in lines.items():
        print_line(f"{', '.join(shared_places)}:")
        for text in texts:
            print_line(text)
    print_line("All is well." if findings.ok else "Not all is well.")


def text_of(finding: Finding) -> str:
    from calque.errors import sentence

    why = finding.why[:1].upper() + finding.why[1:] if WORDS.match(finding.why) else finding.why
    return " ".join(sentence(part) for part in (finding.what, why, finding.todo) if part)
