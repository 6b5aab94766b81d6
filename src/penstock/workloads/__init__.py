"""Workloads that benches and the demo run."""
