"""A virus on a network of people who go out or stay at home."""
