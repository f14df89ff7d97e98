"""The measurements of scripts/benchmark.py, a module each."""
