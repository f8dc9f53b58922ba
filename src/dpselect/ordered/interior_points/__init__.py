"""Interior points, and what reduces to them: any value between the smallest and the largest of the data."""
