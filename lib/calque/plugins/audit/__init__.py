"""Statements of SQL over what a deployment kept of its epochs, hops, events and tables."""
