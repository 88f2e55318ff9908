"""Pure flows that yield requests, and the driver that answers them."""
