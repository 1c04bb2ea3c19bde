"""Surrogate minds: small choice models, fitted to recorded decisions, that decide in place of a language model.

`mesa-llm distill` fits one and writes it to a file (see `mesa_llm.experiments.distillation`); `llm="surrogate:FILE"`
decides by it. The file is JSON with plain numbers, checked and bounded on reading, as it may be a stranger's. What
enters a decision is computed with Python's own floats in a fixed order, so that it is the same on every machine.
"""
