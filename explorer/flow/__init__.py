"""Gradient flow: how gradients shrink and grow on their way back through the steps of a network."""
