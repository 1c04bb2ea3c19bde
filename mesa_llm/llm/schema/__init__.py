"""JSON schemas: flattened, sampled from, described in words, and compiled to grammars."""
