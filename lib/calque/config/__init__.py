"""The configuration file: read whole, checked whole, before anything is connected.

`load` is all the rest of the program needs. `units` has durations, sizes and percentages; `places` paths and addresses;
`keys` the sections and what each key takes; `conflicts` what keys say against each other; `lines` where a key stands;
`reader` puts them together and words what is wrong.
"""

from calque.config.keys import Config, Journal, Source, State, Target, Window
from calque.config.reader import load

__all__ = ["Config", "Journal", "Source", "State", "Target", "Window", "load"]
