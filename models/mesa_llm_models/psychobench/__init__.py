"""Thirteen questionnaires about oneself, and how the answers compare with those of people."""
