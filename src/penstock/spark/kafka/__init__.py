"""Kafka by way of Spark's own connector, which is optional: `penstock install kafka` brings it."""
