"""A village with werewolves and a seer, who talk by day and vote."""
