"""Tools without a subject, which every room may use.

Errors and warnings, checked arrays, registries, files that a crash cannot spoil, locks, caches and the state of the
process. Nothing here knows of privacy, of channels or of programs. It imports nothing of the package. Nothing here is
public; users catch errors by `mechdesign.errors`.
"""
