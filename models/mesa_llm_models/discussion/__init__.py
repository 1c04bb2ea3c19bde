"""People who talk in a room, and may keep silent: SAUCE's discussions."""
