"""JSON schemas made flat, drawn from, described in words, and compiled to a grammar."""
