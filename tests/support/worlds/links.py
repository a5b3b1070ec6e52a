"""Links that property tests draw: several local names of few remote ones, tables and whole databases of them."""

from __future__ import annotations

from hypothesis import strategies as st

from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.remotes.core.layers import layer_policies, layers_of
from calque.plugins.remotes.model import Links

REMOTE_DATABASES = ("d1", "d2")
REMOTE_TABLES = st.builds(TableName, st.sampled_from(REMOTE_DATABASES), st.sampled_from(["a", "b", "p", "v", "tmp"]))
LOCAL_DATABASES = ("d1", "d2", "m", "links")
LOCAL_TABLES = st.builds(TableName, st.sampled_from(LOCAL_DATABASES), st.sampled_from(["a", "b", "x", "y"]))
LINKS = st.builds(
    Links,
    st.dictionaries(LOCAL_TABLES, REMOTE_TABLES, max_size=6),
    st.dictionaries(st.sampled_from(LOCAL_DATABASES), st.sampled_from(REMOTE_DATABASES), max_size=3),
).filter(lambda links: bool([*links]))
TEMPLATE = Policy("links", "hq", warehouse="file:/target", data="none")


def policies_of(links: Links) -> list[Policy]:
    """The policy of each layer."""
    return list(layer_policies(TEMPLATE, links, layers_of(links, {}), ()).values())
