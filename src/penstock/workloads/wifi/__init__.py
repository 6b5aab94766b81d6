"""Wi-Fi associations on a campus as data products that are fit to share (BatchIT, section VI)."""

from penstock.workloads.wifi.associations import SCHEMA, TICK_SECONDS, Arrival, generate, replay
from penstock.workloads.wifi.campus import Campus
from penstock.workloads.wifi.crowd import Crowd
from penstock.workloads.wifi.dispersion import index_of_dispersion

__all__ = [
    "SCHEMA",
    "TICK_SECONDS",
    "Arrival",
    "Campus",
    "Crowd",
    "generate",
    "index_of_dispersion",
    "replay",
]
