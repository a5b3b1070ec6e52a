"""Events of a metastore's log: `decode` reads the objects in a message and `encode` writes them, `keys` extracts the
columns that say which objects an event touches, `rows` keeps them as Arrow, `effects` says what each kind of event
does, `kinds` which tables are not replicated."""
