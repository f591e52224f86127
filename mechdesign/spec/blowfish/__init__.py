"""The specification of a release from a table of records under a policy, in TOML."""
