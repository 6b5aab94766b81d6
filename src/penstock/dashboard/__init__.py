"""Watching an engine: the live page, Prometheus metrics, alerts."""

from penstock.dashboard.server import PORT, Dashboard
from penstock.dashboard.watch import Watch

__all__ = ["PORT", "Dashboard", "Watch"]
