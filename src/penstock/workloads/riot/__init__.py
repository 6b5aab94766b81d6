"""RIoTBench's four applications on Sense-Your-City: ETL, PRED, STATS and TRAIN, as EdgeWise runs them."""

from penstock.workloads.riot.city import City, find_city, generate_city
from penstock.workloads.riot.etl import etl
from penstock.workloads.riot.pred import pred
from penstock.workloads.riot.stats import stats
from penstock.workloads.riot.topologies import PAPER_INSTANCES, TOPOLOGIES, Topology, topology
from penstock.workloads.riot.train import requests, train

__all__ = [
    "PAPER_INSTANCES",
    "TOPOLOGIES",
    "City",
    "Topology",
    "etl",
    "find_city",
    "generate_city",
    "pred",
    "requests",
    "stats",
    "topology",
    "train",
]
