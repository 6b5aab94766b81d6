"""What `penstock demo` shows: a live table, a picture and a report."""
