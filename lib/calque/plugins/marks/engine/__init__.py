"""Marks ("set done"): made at the source, followed through its log, and looked for at targets."""
