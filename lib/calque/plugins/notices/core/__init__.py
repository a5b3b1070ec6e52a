"""The notices that a journal and a target's ledger give, their keys, their topics and their texts."""
