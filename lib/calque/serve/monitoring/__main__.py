"""Print the files' paths, one a line."""

from __future__ import annotations

from calque.serve.monitoring import ALERTS, DASHBOARD

if __name__ == "__main__":
    print(DASHBOARD, ALERTS, sep="\n")
