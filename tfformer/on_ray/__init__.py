"""Training and translating on a Ray cluster."""
