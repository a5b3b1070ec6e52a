"""The command `python -m calque.serve.monitoring`, which prints the paths of the package's Grafana dashboard and of its
Prometheus alerts, one a line."""

from __future__ import annotations

from calque.serve.monitoring import ALERTS, DASHBOARD

if __name__ == "__main__":
    print(DASHBOARD, ALERTS, sep="\n")
