"""Figures, tables and text of pages, made without Solara."""
