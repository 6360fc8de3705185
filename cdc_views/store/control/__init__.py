"""The control log `_epochs`: every decision of the writer, in order, and what must be kept because of it."""
