"""Catalogs that links lead to, ways to them, and the log of our own over those that have none."""
