"""A tournament of the iterated prisoner's dilemma."""
