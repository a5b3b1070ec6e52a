"""The optional package that locations on HDFS need."""

from __future__ import annotations

from calque.config.extras import Extra, part_with_scheme
from calque.config.plugs import Config
from calque.plugins.hdfs.wiring import HDFS as KIND


def needed(config: Config) -> str:
    return part_with_scheme(config, KIND.schemes)


HDFS = Extra(name="hdfs", modules=("hdfs_native",), needed=needed)
