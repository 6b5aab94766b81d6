"""The one exception that every error of Penstock's own derives from."""


class PenstockError(Exception):
    """Something Penstock refuses to do; the message says what, why, and what follows."""
