"""Every error and warning of the package, by which users catch them."""

from mechdesign.base import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
