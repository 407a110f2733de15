"""Tables of the parts of a diagnosis, one module for each."""
