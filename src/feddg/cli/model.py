"""`feddg predict` and `feddg evaluate`: a model folder at work."""


def predict() -> None:
    """x"""


def evaluate() -> None:
    """x"""
