"""Sets of partitions that are done: producers mark them at the source, consumers look and wait for them at targets.

with calque.done.after("calque.toml", "sales.orders", ds="2024-01-01"):
    ...                                 # write the day's partitions; marked when the block has succeeded

calque.done.wait("calque.toml", "sales.orders", target="dr", ds="2024-01-01")
"""

from typing import TYPE_CHECKING

from calque.plugins.marks.api.functions import after, check, mark, wait

if TYPE_CHECKING:
    from calque.plugins.marks.api.write_frame import write

__all__ = ["after", "check", "mark", "wait", "write"]


def __getattr__(name: str) -> object:
    """`write`, which needs Spark, is loaded when it is asked for."""
    if name == "write":
        from calque.plugins.marks.api.write_frame import write

        return write
    raise AttributeError(f"module 'calque.done' has no attribute {name!r}")
