"""What kage's figures stand beside: the least that does the same job."""
