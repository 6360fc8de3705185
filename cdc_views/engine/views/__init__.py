"""Step 5: the views, from their declaration to their commit."""
