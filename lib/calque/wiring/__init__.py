"""From a configuration to live objects: the only room that makes adapters."""
