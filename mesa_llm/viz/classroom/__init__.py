"""A classroom: several people in one shared model, each in a seat of their own; only the teacher runs it."""
