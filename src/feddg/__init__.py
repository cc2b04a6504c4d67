"""Federated domain generalisation: train across private sites, work at one nobody has seen."""

__version__ = "0.1.0"
