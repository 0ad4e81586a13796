"""The gate: rules, grants, seals and the decision log."""
