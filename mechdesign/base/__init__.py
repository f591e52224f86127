"""General tools for every room.

Errors and warnings, checked arrays, registries, atomic files, locks, caches, and process-wide settings. Nothing here
depends on privacy, channels or programs, and the room imports nothing else of the package. Nothing here is public;
users catch errors by `mechdesign.errors`.
"""
