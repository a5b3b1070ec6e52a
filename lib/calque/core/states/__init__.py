"""States that the source had: `fold` makes a chain of them from events, `infer_contents` and `kept_files` find the
files of each, `locate` finds the one that a target shows."""
