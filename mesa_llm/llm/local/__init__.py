"""The embedded language model, on one thread of this process."""
