"""The page of week 11: the epidemic, whose parameters are varied.

Run it with `mesa-llm app notebooks/course/11_sensitivity_calibration/page.py`.
"""

from mesa_llm_models.classics.epidemic.app import page

__all__ = ["page"]
