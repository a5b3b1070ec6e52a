"""Clients of catalogs, and what links are told of."""
