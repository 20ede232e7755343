"""What the user asks, from option values and files: checked, and as records."""
