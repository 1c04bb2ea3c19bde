"""One much-followed account and its followers on X, as Shachi's benchmark has them; and the studies of OASIS."""
