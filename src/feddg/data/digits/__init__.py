"""Digits in the many files that they are given away in: idx, .mat, .npz, .h5, pickles, images."""
