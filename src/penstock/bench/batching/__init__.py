"""Planned batches and privacy operators, measured."""
