"""From findings to the smallest set of changes that cures them. Pure: what is planned is printed, kept, or applied."""
