"""The page of week 8: the money model, with personas to choose.

Run it with `mesa-llm app notebooks/course/08_prompt_persona/page.py`.
"""

from mesa_llm_models.classics.boltzmann_wealth.app import page

__all__ = ["page"]
