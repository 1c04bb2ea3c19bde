"""Bidders with a limited purse, at an auction of things whose worth they can only estimate."""
