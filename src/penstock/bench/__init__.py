"""Side-by-side measurements: each bench is one module, found by its name in the catalog."""
