"""The page of week 5: the epidemic on a network, with its recorded run beside the rule twin.

Run it with `mesa-llm app notebooks/course/05_epidemic/page.py`.
"""

from mesa_llm_models.classics.epidemic.app import page as page
