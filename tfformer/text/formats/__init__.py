"""Divide documents into sentences and markup: a module per format."""
