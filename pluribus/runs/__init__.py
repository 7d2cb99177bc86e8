"""Runs: training from a configuration to a run folder, evaluating and predicting with it, and comparing methods."""
