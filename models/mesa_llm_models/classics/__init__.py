"""Classic agent-based models, each with a rule twin and a language model in the same world."""
