"""Bidders with a limited budget, at an auction of things whose worth they can only estimate."""
