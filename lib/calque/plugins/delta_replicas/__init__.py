"""Tables that a target keeps as Delta tables, with a version for each state that the source had."""
