"""The one way in which an iteration ends early."""

__all__ = ["Stalled"]


class Stalled(Exception):
    """The iteration cannot go on; where it stands is still valid."""
