"""A classroom: several people in one shared model, each with their own seat; only the teacher runs the model."""
