"""The server of pages: who gets in, which pages there are, and what they share."""
