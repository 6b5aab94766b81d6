"""Operators that people reuse: functions from DataFrame to DataFrame."""
