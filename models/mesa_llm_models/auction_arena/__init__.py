"""Bidders with a limited budget at an auction of lots whose value they can only estimate."""
