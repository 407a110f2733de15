"""How the parts of a diagnosis are shown to people: one module per part, each from a frame to grids."""
