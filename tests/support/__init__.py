"""What tests share, in rooms: `worlds`, `sources`, `services`, `judges`, `faults`, `runs`."""
