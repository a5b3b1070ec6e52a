"""AWS Glue's Data Catalog as a catalog that links may lead to."""

from calque.adapters.glue.client import CLIENT

__all__ = ["CLIENT"]
