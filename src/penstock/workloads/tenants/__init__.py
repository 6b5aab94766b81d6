"""Tenants on one pool (Cameo, section 6): advertisement queries, some urgent and some bulky.

`ipq1` to `ipq4` are pipelines and `ipq1_frame` to `ipq4_frame` the same for plain Spark; `urgent_jobs` and
`bulk_jobs` describe what runs, `messages_of` what arrives, and `expected` what must come out.
"""

from penstock.workloads.tenants.arrivals import (
    ARRIVALS,
    TICK_SECONDS,
    Message,
    completed_at,
    in_ticks,
    messages_of,
)
from penstock.workloads.tenants.check import expected, wrong_values
from penstock.workloads.tenants.events import PAYLOAD_SCHEMA, SCHEMA, AdEvents
from penstock.workloads.tenants.frames import (
    FRAMES,
    ipq1_frame,
    ipq2_frame,
    ipq3_frame,
    ipq4_frame,
    parsed,
)
from penstock.workloads.tenants.groups import GROUPS, Group, Job, bulk_jobs, urgent_jobs
from penstock.workloads.tenants.queries import QUERIES, ipq1, ipq2, ipq3, ipq4

__all__ = [
    "ARRIVALS",
    "FRAMES",
    "GROUPS",
    "PAYLOAD_SCHEMA",
    "QUERIES",
    "SCHEMA",
    "TICK_SECONDS",
    "AdEvents",
    "Group",
    "Job",
    "Message",
    "bulk_jobs",
    "completed_at",
    "expected",
    "in_ticks",
    "ipq1",
    "ipq1_frame",
    "ipq2",
    "ipq2_frame",
    "ipq3",
    "ipq3_frame",
    "ipq4",
    "ipq4_frame",
    "messages_of",
    "parsed",
    "urgent_jobs",
    "wrong_values",
]
