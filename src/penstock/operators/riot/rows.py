"""The rows that pass between the RIoTBench operators: names of columns, and the types they work on.

- a source's line: value STRING (timestamp,SenML), arrived TIMESTAMP, msgid LONG
- an observation: msgid, arrived, time LONG (ms), longitude, latitude DOUBLE, sensor STRING, name STRING,
  value DOUBLE (null for the name source), text STRING (the id for the name source, else null)
- a wide row: msgid, arrived, time, longitude, latitude, source or sensor, and a DOUBLE for each quantity
- what is published: msgid, arrived, payload STRING
"""

from __future__ import annotations

CARRIED = ("msgid", "arrived")
"""What every row keeps from the line it came of: its number, and when it was played."""
PLACE = ("longitude", "latitude")
QUANTITIES = ("temperature", "humidity", "light", "dust", "airquality_raw")
"""What a sensor of Sense-Your-City observes."""
OBSERVATIONS = ("source", *QUANTITIES)
