"""A classroom: students play the agents of one shared model, each from their own seat; only the teacher runs it."""
