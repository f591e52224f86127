"""The one way in which an iteration ends early."""

__all__ = ["StallError"]


class StallError(Exception):
    """The iteration cannot go on; where it stands is still valid."""
