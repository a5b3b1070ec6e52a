"""Removes what nothing needs any more."""
