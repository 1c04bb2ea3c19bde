"""Traders on a small stock exchange, who borrow, trade two stocks, forecast and talk."""
