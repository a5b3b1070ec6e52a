"""One writer at a target."""
