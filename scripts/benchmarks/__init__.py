"""The measurements of scripts/benchmark.py, one per module."""
