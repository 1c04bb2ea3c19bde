"""Firms that price, hire and invest, households that buy, and a government that taxes."""
