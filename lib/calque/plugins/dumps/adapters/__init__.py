"""A dump as a source: its log, its catalog, its files."""
