"""Traders who know a little each, and the prices they make together."""
