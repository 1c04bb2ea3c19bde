"""Traders who each know a little, and the prices they make together."""
