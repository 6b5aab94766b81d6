"""What users declare: pipelines of sources, operators and sinks, with latency targets. Imports no Spark."""

from penstock.pipeline.checks import FloorTable
from penstock.pipeline.endpoints import SinkSpec, SourceSpec
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.latency import DurationError, format_seconds, parse_latency
from penstock.pipeline.nodes import Loop, Node, Operator, Sink, Source, Window
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.stream import Stream
from penstock.pipeline.tenant import Tenant

__all__ = [
    "DurationError",
    "FloorTable",
    "Loop",
    "Node",
    "Operator",
    "Pipeline",
    "PipelineError",
    "Sink",
    "SinkSpec",
    "Source",
    "SourceSpec",
    "Stream",
    "Tenant",
    "Window",
    "format_seconds",
    "parse_latency",
]
