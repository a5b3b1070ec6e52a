"""Policies: the objects that a target takes and their names there. `admit` decides, by `patterns` and `predicates`."""
