"""Analogies that no agent was taught: digit matrices, letter strings, words and stories."""
