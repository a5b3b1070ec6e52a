"""Done sets: producers mark partitions of a source as complete, consumers ask and wait for them at targets.

Marks travel with the data: a target has a mark once it shows the state that the mark was made in.
"""
