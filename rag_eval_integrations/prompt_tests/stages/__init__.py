"""The stages that make tests: each has its prompt, its parser and its version in one module."""
