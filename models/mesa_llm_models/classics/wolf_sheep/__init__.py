"""Sheep that graze, and wolves that hunt them."""
