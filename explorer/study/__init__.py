"""Many experiments, one after the other, and what they show together."""
