"""The TOML specification, and what it asks for."""
