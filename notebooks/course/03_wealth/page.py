"""The page of coins, with its recorded runs: `mesa-llm app notebooks/course/03_wealth/page.py`."""

from mesa_llm_models.classics.boltzmann_wealth.app import page

__all__ = ["page"]
