"""The house rules that no linter knows: effects pass failpoints, sources name no machine, entry points stay small."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grimp import build_graph

from calque import ports
from calque.engine.failpoints import EFFECTS
from calque.engine.replica.dry_run_ports import DryRunCatalog, DryRunLedger, DryRunStorage
from calque.plugins.grants import ports as grants
from calque.plugins.marks import ports as marks
from calque.ports.transactions import ReplicatedTransactions, TransactionReader
from support.places import ROOT

LIBRARY = sorted((ROOT / "lib").rglob("*.py"))
JOBS = sorted((ROOT / "jobs").glob("*.py"))
PACKAGE = ROOT / "lib" / "calque"

PORTS = {
    "catalog": ports.Catalog,
    "lease": ports.Leases,
    "journal": ports.Journal,
    "gaps": ports.Gaps,
    "evidence": ports.EvidenceStore,
    "pins": ports.Pins,
    "scans": ports.Scans,
    "commits": ports.Commits,
    "transactions": ReplicatedTransactions,
    "marks": marks.MarkStore,
    "partition_events": marks.PartitionEvents,
    "privileges": grants.Privileges,
    "ledger": ports.Ledger,
    "storage": ports.Storage,
}
READS = {
    "catalog": {
        "abilities",
        "contents",
        "databases",
        "tables",
        "functions",
        "database",
        "table",
        "headers",
        "function",
        "partition_names",
        "partitions",
        "few_partitions",
        "identity",
        "constraints",
        "foreign_keys_to",
        "table_statistics",
        "partition_statistics",
    },
    "lease": {"newest"},
    "journal": {"last", "oldest", "entries", "events"},
    "gaps": {"recorded", "settled"},
    "evidence": {"considered", "evidence"},
    "pins": {"at", "events", "usage"},
    "scans": {"last", "entries", "listings", "remembered"},
    "commits": {"upto", "commits", "remembered"},
    "transactions": set(),
    "marks": {"last", "after"},
    "partition_events": {"is_done"},
    "privileges": {"all_grants", "grants", "roles"},
    "ledger": {
        "last_epoch",
        "epochs",
        "objects",
        "tables",
        "records",
        "latest_objects",
        "headers",
        "rows_of",
        "places",
    },
    "storage": {
        "list",
        "exists",
        "checksums",
        "system_checksums",
        "digests",
        "row_digests",
        "files",
        "read",
        "children",
        "entries",
        "modified",
        "permissions",
        "tails",
    },
}
ONLY_READ = {
    ports.EventFiles: {"files"},
    ports.EventLog: {"current", "read"},
    ports.CatalogReader: READS["catalog"] - {"abilities", "contents"},
    TransactionReader: {"open_transactions", "valid_write_ids"},
    ports.Clock: {"elapsed_ns", "now_ns", "sleep"},
}
"""Sockets that leave nothing behind."""
OF_CATALOG = {ports.Databases, ports.Tables, ports.Partitions, ports.Functions, ports.Facets}
"""Slices of `ports.Catalog`, which has all of their methods."""
WITHOUT_CALLERS = {("transactions", "roll_back")}
"""Effects that need no failpoint, as long as nothing of ours calls them."""
COMPOSED = {("catalog", "settle")}
"""Effects that are made of other calls of ports, each of which passes a failpoint of its own."""

PLACES = r"/(?:home|root|Users|work|mnt|opt|srv|usr/local)/"
ADDRESS = r"\b(?:[a-z]+:)?//(?!127\.0\.0\.1|localhost\b)[\w-]+(?:\.[\w-]+)+"
"""An address of a host with a dot in its name; placeholders (`host`, `s3`) have none."""


def methods(port: type) -> set[str]:
    """What a Protocol asks for, with what it inherits."""
    return {name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")}


def called(name: str) -> Iterator[Path]:
    """Files above the adapters that call a method of that name."""
    for file in LIBRARY:
        if {"adapters", "sandbox"}.isdisjoint(file.parts):
            nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            calls = (node.func for node in nodes if isinstance(node, ast.Call))
            if any(isinstance(function, ast.Attribute) and function.attr == name for function in calls):
                yield file


def test_every_port_is_known_here() -> None:
    own = {
        thing
        for module in (ports, marks, grants)
        for _, thing in inspect.getmembers(module, inspect.isclass)
        if getattr(thing, "_is_protocol", False) and f"{thing.__module__}.".startswith(f"{module.__name__}.")
    }
    assert own == {*PORTS.values(), *ONLY_READ, *OF_CATALOG}
    assert set().union(*map(methods, OF_CATALOG)) | {"identity", "abilities"} == methods(ports.Catalog)


@pytest.mark.parametrize("name", PORTS)
def test_every_method_of_a_port_is_a_read_or_passes_a_failpoint(name: str) -> None:
    excepted = {method for port, method in WITHOUT_CALLERS | COMPOSED if port == name}
    assert methods(PORTS[name]) - excepted == (set(EFFECTS[name]) - excepted) | READS[name]
    assert READS[name].isdisjoint(EFFECTS[name])


@pytest.mark.parametrize("port", ONLY_READ, ids=lambda port: port.__name__)
def test_a_port_that_leaves_nothing_behind_gets_no_effect_unseen(port: type[object]) -> None:
    assert methods(port) == ONLY_READ[port]


def test_failpoints_guard_no_port_that_is_not_there() -> None:
    assert set(EFFECTS) == set(PORTS)


def test_an_effect_without_a_failpoint_has_no_caller() -> None:
    bare = {(port, method) for port, method in WITHOUT_CALLERS if method not in EFFECTS[port]}
    assert {method: list(called(method)) for _, method in bare} == {method: [] for _, method in bare}


@pytest.mark.parametrize("file", [*LIBRARY, *JOBS], ids=lambda file: str(file.relative_to(ROOT)))
def test_no_source_names_a_place_of_some_machine_or_a_host(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert str(ROOT) + "/" not in text
    assert re.findall(PLACES, text) == []
    assert re.findall(ADDRESS, text) == []


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_module_says_first_what_it_is_for(file: Path) -> None:
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert said, "a module begins with a docstring"
    assert said.splitlines()[0].strip()


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.name)
def test_an_entry_point_is_at_most_forty_lines(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 40


def test_there_are_entry_points() -> None:
    assert [file.name for file in JOBS] == ["capture.py", "replicate.py"]


@pytest.mark.parametrize(
    ("port", "dry_run"), [("catalog", DryRunCatalog), ("ledger", DryRunLedger), ("storage", DryRunStorage)]
)
def test_a_dry_run_forwards_no_effect(port: str, dry_run: type[object]) -> None:
    assert [method for method in EFFECTS[port] if method not in vars(dry_run)] == []


ERRORS = frozenset(
    {
        "Refused",
        "Unavailable",
        "Broken",
        "AccessRefused",
        "CallFailed",
        "EventsForgotten",
        "LeaseHeldByOther",
        "StatementSyntaxError",
        "UsageError",
    }
)
NAMED = re.compile(
    "calque|commit_table|strict_locations|targets|file:|hdfs:|librdkafka|dfsadmin|format =|registry_options"
)
"""Words that errors may begin with though they are written small: they are names."""
BEHIND_A_PLACE = {
    "checks.py",
    "conflicts.py",
    "file.py",
    "keys.py",
    "login_misfits.py",
    "patterns.py",
    "places.py",
    "config.py",
    "sections.py",
    "secret_keys.py",
    "serve_keys.py",
    "units.py",
}
"""Whose errors stand behind the place in the configuration: `calque.toml:7: targets.dr.scan: it is zero.`"""


def beginnings(part: ast.expr) -> Iterator[str]:
    """How a part of an error begins, where the source says so."""
    match part:
        case ast.Constant(value=str(text)) | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*beginnings(body), *beginnings(orelse))
        case ast.BinOp(left=left):
            yield from beginnings(left)


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_part_of_an_error_begins_with_a_capital_letter_or_a_name(file: Path) -> None:
    small = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in ERRORS:
                parts = node.args[1:] if file.name in BEHIND_A_PLACE else node.args
                texts = (text for part in parts for text in beginnings(part))
                small += [text for text in texts if text[:1].islower() and not NAMED.match(text)]
    assert small == []


BROAD = {"Exception", "BaseException"}
CATCHES_ALL = {"core/defects.py", "engine/lease/keeper.py"}
"""Of core and engine: who says what may be caught, and a thread that nobody else would hear of."""


def files_of(floor: str) -> list[Path]:
    """The modules of a floor, in the kernel and in each plugin."""
    return sorted(
        file
        for root in (PACKAGE, *PACKAGE.glob("plugins/*"))
        for file in (*root.glob(f"{floor}.py"), *root.glob(f"{floor}/**/*.py"))
    )


@pytest.mark.parametrize("file", [*files_of("core"), *files_of("engine")], ids=str)
def test_what_nobody_expects_is_caught_in_one_place(file: Path) -> None:
    handlers = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ExceptHandler)]
    broad = [node.lineno for node in handlers if is_broad(node) and not ends_raising(node)]
    assert not broad or str(file.relative_to(PACKAGE)) in CATCHES_ALL


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in BROAD for kind in kinds)


def ends_raising(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


OF_OUR_OWN = {"definition", "log", "combined_note", "parquet_columns", "row_log"}
"""Modules of core that parse what calque, or a library, wrote; `decode` has bounds of its own."""


@pytest.mark.parametrize("file", files_of("core"), ids=str)
def test_what_is_foreign_is_parsed_and_unpacked_within_bounds(file: Path) -> None:
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)}
    unbounded = calls & {"json.loads", "orjson.loads", "gzip.decompress", "zlib.decompress", "gzip.open"}
    assert not unbounded or file.stem in {"bounded", "decode", "metadata", *OF_OUR_OWN}


def test_modules_import_each_other_in_no_circle() -> None:
    """Imports within functions and for type checkers count, too."""
    graph = build_graph("calque", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()


def test_the_kernel_imports_no_plugin() -> None:
    """The contract of the package's rooms has no exception."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert contracts[0]["exhaustive"]
    assert "ignore_imports" not in contracts[0]


def classes(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Those of a file and what they inherit, by their full names where these are calque's."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    module = ".".join(file.relative_to(ROOT / "lib").with_suffix("").parts)
    places = {node.name: f"{module}.{node.name}" for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            places |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]
            yield f"{module}.{node.name}", [places.get(base, base) for base in bases]


def test_a_class_inherits_none_of_ours_but_errors_protocols_sections_and_what_forwards_a_port() -> None:
    """Who overrides a few of a port's methods needs all others passed on."""
    inherited = {name: bases for file in LIBRARY for name, bases in classes(file)}
    by_short_name = {name.rpartition(".")[2]: name for name in inherited}

    def is_permitted(name: str) -> bool:
        short_name = name.rpartition(".")[2]
        if short_name.startswith("Forwarding") or short_name in {"Protocol", "BaseModel", "Exception", "OSError"}:
            return True
        return any(map(is_permitted, inherited.get(by_short_name.get(short_name, ""), ())))

    found = {
        f"{name}({base})"
        for name, bases in inherited.items()
        for base in bases
        if base.startswith("calque.") and not is_permitted(base)
    }
    assert found == set()


MOST_MODULES, MOST_METHODS, MOST_POSITIONAL = 25, 30, 9
PORTS_ITSELF = {"DeltaLedger", "DryRunCatalog", "FileStorage", "ForwardingCatalog", "HiveCatalog"}
"""Those that have a port's methods."""


def test_a_folder_has_few_enough_modules_to_be_read() -> None:
    counts = Counter(file.parent for file in LIBRARY if file.name != "__init__.py")
    assert [str(folder) for folder, count in counts.items() if count > MOST_MODULES] == []


def test_no_list_is_spread_into_another_to_please_the_formatter() -> None:
    found = []
    for file in [*LIBRARY, *JOBS, *(ROOT / "tests").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
                found.append(f"{file.name}:{node.lineno}")
    assert found == []


def test_no_function_takes_many_positional_parameters() -> None:
    found = []
    for file in LIBRARY:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
                if len(names) - (names[:1] in (["self"], ["cls"])) > MOST_POSITIONAL:
                    found.append(f"{file.name}: {node.name}")
    assert found == []


def test_a_class_has_few_enough_methods_to_be_read() -> None:
    found = set()
    for file in LIBRARY:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
                is_protocol = any(ast.unparse(base).startswith("Protocol") for base in node.bases)
                if len(methods) > MOST_METHODS and not is_protocol:
                    found.add(node.name)
    assert found == PORTS_ITSELF
