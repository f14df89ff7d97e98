"""Documents divided into sentences and the rest, a module for each format."""
