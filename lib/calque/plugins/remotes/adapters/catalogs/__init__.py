"""The catalogs without a log that links may lead to: AWS Glue's, Iceberg's, and single tables of Iceberg by their
path."""

from calque.plugins.remotes.adapters.catalogs.glue import GLUE
from calque.plugins.remotes.adapters.catalogs.iceberg import ICEBERG

__all__ = ["GLUE", "ICEBERG"]
