"""The kinds of requirement on a channel, one file each."""
