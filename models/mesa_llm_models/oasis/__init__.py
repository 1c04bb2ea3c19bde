"""A popular account and its followers on X, as in Shachi's benchmark; and the studies of OASIS."""
