"""The page of week 12: the dilemma, whose tab *Experiment* audits it.

Run it with `mesa-llm app notebooks/course/12_audit_ethics/page.py`.
"""

from mesa_llm_models.classics.prisoners_dilemma.app import page

__all__ = ["page"]
