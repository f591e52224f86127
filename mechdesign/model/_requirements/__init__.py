"""The kinds of requirements on a channel; each kind is defined in one file."""
