"""What the connectors hold: rows a second into the spool and out of it, and what is lost over restarts."""
