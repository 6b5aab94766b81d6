"""Elastic replicas and nodes on a real cluster, as E2DF was evaluated."""
