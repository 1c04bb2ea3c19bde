"""The page of week 6: Axelrod's village, with its recorded run beside the rule twin.

Run it with `mesa-llm app notebooks/course/06_flocking_culture/page.py`.
"""

from mesa_llm_models.classics.culture.app import page as page
