"""Decisions that test thirty cognitive biases."""
