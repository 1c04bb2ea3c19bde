"""The analogies of the benchmark: matrices, letter strings, verbal analogies and stories, our own or the original's."""
