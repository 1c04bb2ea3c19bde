"""Whether decisions lean the way that thirty cognitive biases would have them lean."""
