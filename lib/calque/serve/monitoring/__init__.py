"""A dashboard for Grafana and rules for Prometheus' alerts, over the metrics of a running process. They are files
beside this module; `python -m calque.serve.monitoring` prints their paths."""

from pathlib import Path

FOLDER = Path(__file__).parent
DASHBOARD = FOLDER / "grafana-dashboard.json"
ALERTS = FOLDER / "prometheus-alerts.yaml"
