from __future__ import annotations

from solver_fixtures import loaded, pdlp_here

__all__ = ["loaded", "pdlp_here"]
