"""Whether an agent solves analogies it was never taught: digit matrices, letter strings, words."""
