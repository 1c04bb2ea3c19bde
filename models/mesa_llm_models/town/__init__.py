"""A small town: people plan their day, go from place to place, and talk with those they meet."""
