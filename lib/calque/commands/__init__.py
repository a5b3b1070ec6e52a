"""The commands, one module or folder each: the click command (what may be written) above its `run` (what is done).

`options` has what several share, `output` how results and errors are printed. What a command needs beyond click is
imported inside its `run`, so that `calque --help` stays quick. `run` returns the exit code and raises the three errors.
"""
