"""Which requests a page of the site may make."""

from urllib.parse import urlsplit


def is_within(url, site):
    """Return whether a request goes to the site, to a file, or nowhere."""
    parts = urlsplit(url)
    return url.startswith(f"{site}/") or parts.scheme in ("blob", "data", "file")
