"""Simulated people who write on topics, and how much of a caricature they are."""
