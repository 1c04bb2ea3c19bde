"""People who meet by chance and give a coin away or keep it."""
