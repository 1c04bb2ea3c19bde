"""A town of two groups, whose members stay or move."""
