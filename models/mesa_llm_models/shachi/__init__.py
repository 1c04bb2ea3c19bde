"""Shachi's studies: other language models, memories of another life, lives in two worlds, and a real price series."""
