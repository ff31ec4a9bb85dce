"""One module for each operator."""
