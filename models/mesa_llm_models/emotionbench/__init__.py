"""Feelings that agents report when they imagine a situation (EmotionBench)."""
