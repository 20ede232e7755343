"""What an error text means: rules over lines, facts from the matrix and the almanac, causes in plain words."""
