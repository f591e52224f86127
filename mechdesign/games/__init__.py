"""Privacy as a game: what an attacker makes of a channel."""
