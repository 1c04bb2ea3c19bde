"""Two groups in a town, whose members stay or move away."""
