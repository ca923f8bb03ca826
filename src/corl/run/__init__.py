"""What a run leaves on disk and shows while it goes on."""
