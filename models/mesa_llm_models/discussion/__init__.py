"""People who talk in a room and may stay silent: SAUCE's discussions."""
