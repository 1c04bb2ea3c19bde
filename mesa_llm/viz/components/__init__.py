"""Solara components that show a model and let a visitor run it."""
