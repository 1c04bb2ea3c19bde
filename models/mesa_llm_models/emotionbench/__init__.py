"""What an agent feels when it imagines that something happens to it (EmotionBench)."""
