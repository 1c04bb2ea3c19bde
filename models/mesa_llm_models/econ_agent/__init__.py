"""Households that work, save and buy, month by month: EconAgent's macroeconomy."""
