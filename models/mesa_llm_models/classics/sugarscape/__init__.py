"""Traders who live on sugar and spice."""
