"""People who read, post, react and follow on a social network."""
