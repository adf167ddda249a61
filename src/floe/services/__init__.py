"""The services behind `floe up`: start, monitor, restart and stop them."""
