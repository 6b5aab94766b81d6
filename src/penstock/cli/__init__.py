"""The `penstock` command: one file for each of its commands, listed in `main`."""
