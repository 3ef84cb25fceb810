"""The page, in a notebook and through Voila."""

from explorer.app.laboratory import page

__all__ = ["page"]
