"""Spark Connect as the engine of a cluster."""
