"""`penstock bench tenants`: urgent and bulky tenants on one pool, under Penstock and on plain Spark."""
