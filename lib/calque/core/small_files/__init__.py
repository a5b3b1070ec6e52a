"""Small files combined into few: `grouping` decides which, `combine_rows` takes their rows over."""
