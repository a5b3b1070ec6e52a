"""The optional packages that locations on S3 need."""

from __future__ import annotations

from calque.config.extras import Extra, part_with_scheme
from calque.config.plugs import Config
from calque.plugins.s3.wiring import S3 as KIND


def needed(config: Config) -> str:
    return part_with_scheme(config, KIND.schemes)


S3 = Extra(name="s3", modules=("botocore", "obstore", "s3fs"), needed=needed)
