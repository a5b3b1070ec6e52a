"""The language of `calque sql`: a text becomes statements, each a frozen value, and its form carries it out.

`split` cuts a text at its semicolons, `parse` makes values by a grammar, and `forms` is the table of statements: a row
says how one is written, for help and errors, and who carries it out. The kernel has rows (`own`, `grammar.lark`),
plugins add theirs, `language` puts them together. Three doors lead here: `calque sql`, its shell, and PEP 249
(`dbapi`).
"""
