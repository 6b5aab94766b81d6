"""Rows from outside into a spool: messages of an MQTT broker, requests over HTTP. Imports no Spark."""
