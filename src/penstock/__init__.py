"""Many streaming pipelines with latency targets on one Spark application.

The public names are loaded at first use, so that `import penstock` costs no import of Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.pipeline import sinks, sources
    from penstock.pipeline.pipeline import Pipeline
    from penstock.pipeline.tenant import Tenant
    from penstock.queues.spool import Spool
    from penstock.spark.engine import Engine

__version__ = "0.1.0"

__all__ = ["Engine", "Pipeline", "Spool", "Tenant", "__version__", "sinks", "sources"]

_HOME_OF = {
    "Engine": "penstock.spark.engine",
    "Pipeline": "penstock.pipeline.pipeline",
    "Spool": "penstock.queues.spool",
    "Tenant": "penstock.pipeline.tenant",
}
_MODULES = {"sinks": "penstock.pipeline.sinks", "sources": "penstock.pipeline.sources"}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
