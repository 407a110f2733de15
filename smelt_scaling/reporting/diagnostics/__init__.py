"""Tables of the parts of a diagnosis, one module for each."""
"""How the parts of a diagnosis are shown to people: one module per part, each from a frame to grids."""
"""How the parts of a diagnosis are shown to people: one module per part."""
