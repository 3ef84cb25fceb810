"""Results side by side: the ratios of their times, and what differs between them."""
