"""The language of `calque sql`: a text becomes statements, each a frozen value, and an executor carries each one out.

`split` cuts a text at its semicolons, `parse` makes values (`statement`) by the grammar (`grammar.lark`), `execute`
hands each to its executor. `forms` says of every kind how it is written, for help and for errors. Three doors lead
here: `calque sql`, its shell (`shell`), and PEP 249 (`dbapi`).
"""
