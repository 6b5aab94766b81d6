"""How planned batches and the privacy operators are measured."""
