"""The live objects of links: clients of remote catalogs, the registry, and the sources and targets that links add."""
