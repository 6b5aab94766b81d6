"""`penstock bench riot`: the four RIoTBench topologies under Penstock and on plain Spark."""
