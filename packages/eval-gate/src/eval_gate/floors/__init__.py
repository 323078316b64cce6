"""Floors and baselines: proposed from runs, written, and held against those of another commit."""
