"""The life of marks ("set done"): made at the source, followed through its log, and looked for at targets."""
