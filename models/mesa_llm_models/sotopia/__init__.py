"""Sotopia: two people with private goals meet, and a judge rates how they get on."""
