"""What a machine has: readers that take a root folder and an environment mapping. Read only."""
