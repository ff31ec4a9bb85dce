"""A failed run's log, from its bytes to the layer, the cause and the fix."""
