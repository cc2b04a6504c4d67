"""Backbones by name, and what a method may ask about any module."""

from feddg.models.anatomy import Anatomy, anatomy
from feddg.models.catalogue import build, known_models

__all__ = ["Anatomy", "anatomy", "build", "known_models"]
