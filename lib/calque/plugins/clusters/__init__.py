"""Clusters of a configuration: where a table is, where a statement runs, and which cluster stands in for another."""
