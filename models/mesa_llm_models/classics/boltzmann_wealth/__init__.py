"""People who meet by chance, and give or keep."""
