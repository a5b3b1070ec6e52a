"""Statements that make, change, show and drop links."""
