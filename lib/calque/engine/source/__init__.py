"""Reads of the source, and the tests of whether what was read can be believed."""
