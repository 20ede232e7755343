"""What people (console) and scripts (json) are shown."""
