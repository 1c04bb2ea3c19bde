"""Firms that set prices, hire and invest, households that buy, and a government that taxes."""
