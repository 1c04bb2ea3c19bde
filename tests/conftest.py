"""What all tests share."""

from hypothesis import settings

settings.register_profile("mesa_llm", deadline=None, derandomize=True)
settings.load_profile("mesa_llm")
