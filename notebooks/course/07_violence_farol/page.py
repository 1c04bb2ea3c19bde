"""The page of week 7: the El Farol problem, with its recorded run beside the rule twin.

Run it with `mesa-llm app notebooks/course/07_violence_farol/page.py`.
"""

from mesa_llm_models.classics.el_farol.app import page as page
