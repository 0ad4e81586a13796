"""The control socket: another shell asks a running kage."""
