"""From a design to files, and back: exported sets, and the formats of other programs."""
