"""A dump as a source, and the source and storage that REPL DUMP works with."""
