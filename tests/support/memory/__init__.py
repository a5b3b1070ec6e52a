"""The world in dictionaries, for tests and for trying things out."""
