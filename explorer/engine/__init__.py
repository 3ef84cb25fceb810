"""The gradient engine: every dz_i/dx through a shared y, in the fewest and cheapest passes.

It knows no built-in function and no page. `plan` imports no torch.
"""
