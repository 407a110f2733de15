"""The numerical core: one centred problem, its exact derivatives, two optimisers and one certificate.

Nothing here knows of endpoints, studies or intervals; `smelt_scaling.fitting` and `smelt_scaling.resampling` do.
"""

from __future__ import annotations
