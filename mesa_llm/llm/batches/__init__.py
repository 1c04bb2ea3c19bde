"""A provider's batches: all requests of a stage are sent together, and answered within a day for half the price."""
