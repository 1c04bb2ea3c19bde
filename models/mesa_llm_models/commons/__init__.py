"""Fishers of one lake, who harvest at once and then talk about it in a town meeting."""
