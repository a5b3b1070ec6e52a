"""What an event says: `decode` its message as objects and `encode` them, `keys` the columns that it touches, `rows`
as Arrow, `effects` what each kind of event does, `kinds` of tables that are not replicated.
"""
