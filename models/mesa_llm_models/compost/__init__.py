"""Simulated personas who write on topics, and how far their texts are caricatures."""
