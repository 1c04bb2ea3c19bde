"""People on a social network, who read, post, react and follow."""
