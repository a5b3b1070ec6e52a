"""Which objects a target takes, and under which names: `admit` decides, `patterns` and `predicates` say it."""
