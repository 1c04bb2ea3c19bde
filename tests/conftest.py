"""What all tests share."""

import signal

from hypothesis import settings

settings.register_profile("mesa_llm", deadline=None, derandomize=True)
settings.load_profile("mesa_llm")

# A shell that starts the tests in the background has Ctrl-C ignored, here and in every process started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
