"""General tools for all packages of mechdesign.

The tools are errors and warnings, checked arrays, atomic files, locks, caches, and process-wide settings.
The tools do not depend on privacy, channels or programs, and import no other package of mechdesign. The tools are
private; users import errors from `mechdesign.errors`.
"""
