"""The states that the source had: `fold` makes a chain of them from events, `infer_contents` and `kept_files` say
which files each one has, `locate` finds the one that a target shows.
"""
