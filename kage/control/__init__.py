"""The control socket: how another shell asks and steers a kage that is running."""
