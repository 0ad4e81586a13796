"""Where settings come from: schema, layers, variables, paths."""
