"""Catalogs without a log that links may lead to: AWS Glue's, Iceberg's, and single tables of Iceberg by their path."""

from calque.adapters.remote_catalogs.glue import GLUE
from calque.adapters.remote_catalogs.iceberg import ICEBERG

__all__ = ["GLUE", "ICEBERG"]
