"""Sotopia: two people with private goals meet, and a judge rates their interaction."""
