"""Human players, who answer by a form on a page or at a terminal."""
