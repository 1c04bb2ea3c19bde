"""Files of discussions in SAUCE's format: what they hold (`plan`), and how they are read and checked (`reading`)."""

from mesa_llm_models.discussion.config.reading import STUDIES, plan_of, read_plan

__all__ = ["STUDIES", "plan_of", "read_plan"]
