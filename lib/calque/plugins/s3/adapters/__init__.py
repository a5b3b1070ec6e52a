"""The store, its requests, and small objects that are read whole."""
