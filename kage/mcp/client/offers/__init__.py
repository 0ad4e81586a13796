"""What a server offers beside tools: resources, prompts, completion."""
