"""Ways to draw several quantiles together, one file each."""
