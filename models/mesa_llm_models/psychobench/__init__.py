"""Thirteen questionnaires about oneself, with answers compared with people's."""
