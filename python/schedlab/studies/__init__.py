"""Published studies: what was measured elsewhere, simulated here, and how well the two agree."""
