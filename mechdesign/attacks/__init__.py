"""What an adversary who sees the released answers can do."""
