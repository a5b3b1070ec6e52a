"""What tests share, in rooms: `memory`, `worlds`, `sources`, `services`, `judges`, `faults`, `runs`."""
