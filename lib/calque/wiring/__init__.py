"""The step from a configuration to live objects, and the only room that makes adapters.

`wiring` has one `SourceWiring` and one `TargetWiring` for each plug of the configuration; `state_folder` is what they
keep state in, and `runtime` what else they share.
"""
