"""Parts of `training/embedded_judge.py`: rows, fits, judges, measures, plots."""
