"""The lease: one writer at a target at a time."""
