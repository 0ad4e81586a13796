"""What a server asks of the person and of kage: forms, pages, the model, folders."""
