"""Traders who borrow, trade two stocks, forecast and talk on a small stock exchange."""
