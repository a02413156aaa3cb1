"""The stages of test generation; each stage's prompt, parser and version are in one module."""
