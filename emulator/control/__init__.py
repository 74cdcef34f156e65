"""Running labs are found and changed from other processes of the same user."""
