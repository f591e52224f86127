"""Warn of bounds that rest on a chain whose counts were smoothed, and say what the counts alone give."""

from __future__ import annotations

from mechdesign.base._errors import SmoothedChainWarning
from mechdesign.base._warnings import warn

__all__ = ["warn_of_smoothing"]


def warn_of_smoothing(path: str, smoothing: float, loss: float, seen: float, identity: bool) -> None:
    """Warn with `SmoothedChainWarning` that a loss function was made of a chain that was smoothed.

    Args:
        path: the argument that the chain is.
        smoothing: what was added to each count.
        loss: L(1) of the chain.
        seen: L(1) by the counts alone.
        identity: whether these carry on all that was leaked, so that no positive budget lasts for ever.
    """
    for_ever = ", by which no positive budget lasts for ever" if identity else ""
    warn(
        f"{path} was counted with smoothing {smoothing:g}, which makes leakage smaller than what was seen: L(1) is "
        f"{loss:.6g}, and {seen:.6g} by the counts alone{for_ever}. Smoothing is for beliefs. For bounds count without "
        'it, with ends="stay" for states that nobody was seen to leave, or give chain.unsmoothed()',
        SmoothedChainWarning,
        stacklevel=4,
    )
