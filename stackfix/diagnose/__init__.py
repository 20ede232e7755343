"""What is wrong with an environment, decided from records alone: nothing here opens a file."""
