"""What an event says: `decode` its message as objects and `encode` them, `keys` the columns that it touches, `rows`
as Arrow, `kinds` of tables that are not replicated.
"""
