"""The section `[clusters]` of the configuration, and a section [clusters.NAME] for each cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from itertools import combinations
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationInfo, model_validator

from calque.config import places
from calque.config.checks import PositiveDuration
from calque.config.keys import MetastoreSection, Section
from calque.config.plugs import Config
from calque.config.pydantic_errors import WrongError, base_folder, with_pydantic_errors
from calque.config.sections import KeyPath, ReadFile, SectionKind
from calque.errors import Refused, nearest
from calque.plugins.clusters import model

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
ENGINES = "calque.engines"
"""The group of entry points that add engines: the name of each is the scheme of its addresses."""
SPARK_CONNECT = "sc"
ENGINE = re.compile(r"([a-z][a-z0-9+.-]*)://\S+")
CONNECT = re.compile(r"sc://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/(;[\w.-]+=[^;\s]*)*)?")
ENGINE_EXAMPLE = 'Write e.g. "sc://host:15002", or leave engine out'


def _engine(text: str) -> str:
    """Return the address of an engine as it is; empty stands for none. Raises `Refused` where it is no address, holds a
    secret, or is of an engine that is not installed."""
    if not text:
        return text
    if places.has_login(text) or re.search(r";\s*token=", text, re.IGNORECASE):
        raise Refused("it has a secret in it", "Addresses are shown in errors", "Leave the secret out")
    match = ENGINE.fullmatch(text)
    schemes = [SPARK_CONNECT, *sorted(point.name for point in entry_points(group=ENGINES))]
    if match is None:
        raise Refused(f'"{text}" is no address of an engine', "One is of Spark Connect: sc://host:port", ENGINE_EXAMPLE)
    if match[1] not in schemes:
        raise Refused(f'"{match[1]}" is no kind of engine', nearest(match[1], schemes), ENGINE_EXAMPLE)
    if match[1] == SPARK_CONNECT and not CONNECT.fullmatch(text):
        raise Refused(f'"{text}" is no address of Spark Connect', "One is sc://host:port", ENGINE_EXAMPLE)
    return text


def _deployments(paths: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Return the paths, absolute and each once."""
    if "" in paths:
        raise WrongError(Refused("a path is empty", "Each names a configuration of calque", 'Write e.g. ["c1.toml"]'))
    return tuple(dict.fromkeys(places.absolute(base_folder(info) / path) for path in paths))


HIVE_NAMES = {
    "hive.default.cluster.name": "default",
    "hive.use.default.cluster": "use_default",
    "hive.disable.clusters": "enabled",
}
"""The settings of "Hive across Multiple Data Centers", each with calque's key. `hive.disable.clusters` says the
opposite of its key."""


def without_hive_names(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the section into the values under calque's keys and those under Hive's names, whether the latter are quoted
    or nested by their dots."""
    own_values, given = dict(values), {}
    for name in HIVE_NAMES:
        if name in own_values:
            given[name] = own_values.pop(name)
        else:
            first, *others = name.split(".")
            found, rest = taken_out(own_values.get(first), others)
            if found is not None:
                given[name] = found
                if rest:
                    own_values[first] = rest
                else:
                    del own_values[first]
    return own_values, given


def taken_out(table: Any, path: Sequence[str]) -> tuple[Any, Mapping[str, Any]]:
    """Return the value at the path, None where there is none, and the table without it."""
    if not isinstance(table, Mapping) or path[0] not in table:
        return None, {}
    rest = {key: value for key, value in table.items() if key != path[0]}
    if len(path) == 1:
        return table[path[0]], rest
    found, below = taken_out(table[path[0]], path[1:])
    return found, {**rest, path[0]: below} if below else rest


class Cluster(MetastoreSection):
    """A cluster: the metastore with its originals and replicas, and the engine that processes statements there."""

    engine: Annotated[str, AfterValidator(with_pydantic_errors(_engine))] = ""


class Clusters(Section):
    """The choice of a cluster for each statement. The clusters themselves are sub-sections: the keys that this class
    does not name."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)
    __pydantic_extra__: dict[str, Cluster] = Field(init=False)

    default: str
    use_default: bool = False
    enabled: bool = True
    max_lag: PositiveDuration = 300.0
    deployments: Annotated[tuple[str, ...], Strict(False), AfterValidator(_deployments)] = ()

    @model_validator(mode="before")
    @classmethod
    def _others_are_sections(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key, value in values.items():
                if key not in cls.model_fields and not isinstance(value, Mapping):
                    todo = "Write a key that there is, or remove it"
                    raise WrongError(Refused("it is no key", nearest(key, cls.model_fields), todo), key)
        return values

    @model_validator(mode="before")
    @classmethod
    def _by_hives_names(cls, values: Any) -> Any:
        """Replace Hive's names for three of the keys, in quotes or nested by their dots, by calque's keys. A name
        beside its own key is refused. pydantic runs validators of this mode from the last to the first, so this one
        comes before `_others_are_sections`."""
        if not isinstance(values, Mapping):
            return values
        own_values, given = without_hive_names(values)
        for name, value in given.items():
            key = HIVE_NAMES[name]
            if key in own_values:
                what = f"it says what {key} says"
                raise WrongError(Refused(what, f"{name} is Hive's name for it", "Leave one of them out"), name)
            is_turned = key == "enabled" and isinstance(value, bool)
            own_values[key] = not value if is_turned else value
        return own_values

    @model_validator(mode="after")
    def _default_is_one(self) -> Clusters:
        if not self.named:
            todo = "Add a section [clusters.NAME] for each"
            raise WrongError(Refused("there is no cluster", "Statements would run nowhere", todo))
        for name in self.named:
            if not NAME.fullmatch(name):
                why = 'Letters, digits, "_" and "-", at most 64, make a name'
                raise WrongError(Refused(f'"{name}" is no name for a cluster', why, "Write e.g. [clusters.C1]"), name)
        if self.default not in self.named:
            what = f'there is no cluster "{self.default}"'
            raise WrongError(Refused(what, nearest(self.default, self.named), "Name one that there is"), "default")
        return self

    @property
    def named(self) -> Mapping[str, Cluster]:
        """The clusters in the order of the file."""
        return self.__pydantic_extra__


@dataclass(frozen=True, slots=True)
class HiveCluster:
    """A cluster of the configuration: its Hive metastore, and the address of the engine that processes statements over
    its tables, empty for none."""

    name: str
    keys: Cluster

    @property
    def engine(self) -> str:
        return self.keys.engine


def sections_in(clusters: Clusters | None) -> Iterator[BaseModel]:
    if clusters is not None:
        yield from (clusters, *clusters.named.values())


def misfits(config: ReadFile) -> Iterator[tuple[KeyPath, Refused]]:
    """Yield a refusal for each two clusters that have one metastore."""
    for one, other in combinations(clusters_of(config).values(), 2):
        if places.one_metastore(one.keys.metastore, other.keys.metastore):
            what = f"{one.name} and {other.name} have one metastore"
            why = "A cluster has a metastore of its own, by which its tables are known"
            yield ("clusters", other.name, "metastore"), Refused(what, why, "Correct one of the addresses")


def deployments_in(clusters: Clusters | None) -> Iterator[tuple[KeyPath, str]]:
    for number, path in enumerate(clusters.deployments if clusters is not None else ()):
        yield ("clusters", "deployments", number), path


def model_at(path: KeyPath) -> type[Cluster] | type[Clusters]:
    return Cluster if len(path) > 1 else Clusters


def no_clusters() -> Clusters | None:
    return None


TEMPLATE = """\
# Where statements run, over several deployments; none by default, or a file of its own that has nothing else.
# [clusters]
# default = "C1"                            # for statements without tables, and new tables of statements without inputs
# use_default = false                       # true: all statements run on the default or fail, as after USE CLUSTER
# enabled = true                            # false: all statements run on the default; nothing of them is looked at
# max_lag = "5m"                            # a replica that lags more counts as absent
# deployments = []                          # the configurations of what replicates between them: ["c1.toml", "c2.toml"]
# One section for each; beside these keys user, auth, tls and so on, as at a target.
# [clusters.C1]
# metastore = "thrift://127.0.0.1:9083"     # its address; a comma-separated list fails over
# engine = "sc://127.0.0.1:15002"           # of Spark Connect; "" for none
"""
CLUSTERS = SectionKind(
    name="clusters",
    annotation=Clusters | None,
    default=no_clusters,
    models={"clusters": Clusters, "clusters.NAME": Cluster},
    model_at=model_at,
    stands_alone=True,
    models_in=sections_in,
    misfits=misfits,
    files=deployments_in,
    template=TEMPLATE,
)


def clusters_of(config: ReadFile) -> Mapping[str, HiveCluster]:
    """Return the clusters by name, in the order of the configuration; none where it has no `[clusters]`."""
    section = config.section(CLUSTERS)
    named = section.named if section is not None else {}
    return {name: HiveCluster(name, keys) for name, keys in named.items()}


def require_clusters(config: Config) -> model.Clusters:
    """Return the clusters as the choice for a statement needs them. Raises `Refused` where the file has none."""
    keys = config.section(CLUSTERS)
    if keys is None:
        todo = "Add [clusters], and a section [clusters.NAME] for each"
        raise Refused("The configuration has no [clusters]", "They say where statements may run", todo)
    return model.Clusters(tuple(keys.named), keys.default, keys.use_default, keys.enabled, keys.max_lag)


def cluster_of(config: Config, name: str) -> HiveCluster:
    """Return the cluster of that name. Raises `Refused`, with the nearest name, where the configuration has none."""
    require_clusters(config)
    clusters = clusters_of(config)
    if name not in clusters:
        todo = "Name a section [clusters.NAME] of the configuration"
        raise Refused(f'There is no cluster "{name}"', nearest(name, clusters), todo)
    return clusters[name]
