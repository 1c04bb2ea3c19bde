"""Models behind pages: stepping, keeping, locking and redrawing them, without Solara."""
