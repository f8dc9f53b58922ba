"""Where tables come from, one file a format: each registers what opens it."""
