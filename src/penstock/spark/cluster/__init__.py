"""Penstock on a cluster: its processes where they are this machine's, its executors, and its slots."""
