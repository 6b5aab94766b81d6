"""Wi-Fi associations on a campus as data products that are fit to share (BatchIT, section VI).

`generate` or `replay` gives what arrives, `policies_of` what each subject allows, `wifi` is the pipeline, and
`Checked` the same in plain Python.
"""

from penstock.workloads.wifi.associations import SCHEMA, TICK_SECONDS, Arrival, generate, replay
from penstock.workloads.wifi.campus import Campus
from penstock.workloads.wifi.check import Checked
from penstock.workloads.wifi.crowd import Crowd
from penstock.workloads.wifi.dispersion import index_of_dispersion
from penstock.workloads.wifi.policies import exposed_subjects, policies_of
from penstock.workloads.wifi.products import Rules, wifi
from penstock.workloads.wifi.sharing import PRODUCTS, Product

__all__ = [
    "PRODUCTS",
    "SCHEMA",
    "TICK_SECONDS",
    "Arrival",
    "Campus",
    "Checked",
    "Crowd",
    "Product",
    "Rules",
    "exposed_subjects",
    "generate",
    "index_of_dispersion",
    "policies_of",
    "replay",
    "wifi",
]
