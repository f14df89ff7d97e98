"""Divide documents into sentences and markup, with one module per format."""
