"""What a tree of processes uses."""

import psutil

from penstock.bench.idle import tree_cpu_seconds, tree_rss_mb


def test_time_and_memory_are_those_of_the_whole_tree() -> None:
    process = psutil.Process()
    assert tree_rss_mb(process) >= process.memory_info().rss / 2**21
    assert tree_cpu_seconds(process) > 0
