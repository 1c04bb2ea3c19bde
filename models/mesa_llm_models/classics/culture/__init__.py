"""Axelrod's model of the spread of culture: villagers who take over habits of their neighbours."""
