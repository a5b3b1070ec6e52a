"""The S3 store, its requests, and its small objects, which are read and written whole."""
