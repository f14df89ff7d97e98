"""Another toolkit's checkpoint becomes an ordinary run directory, and the names by which one goes back."""
