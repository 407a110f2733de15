"""Exponents of a law under every count of parameters in the table, as a tidy frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["parameter_conventions"]


def parameter_conventions(study: Study) -> pd.DataFrame:
    """Tabulate what a study says under the other counts of parameters that its table holds.

    Parameters
    ----------
    study : Study
        A fit of a law in N or N_act, or in F where F is ``flops_per_param`` times one of the counts.

    Returns
    -------
    DataFrame
        One row per architecture and count: ``arch, parameters, used, alpha, beta, E, allocation, certified``. alpha is
        the decay of the term in size, beta of the term in tokens, ``allocation`` the exponent a = beta/(alpha + beta)
        of N* ~ C^a. Empty where the table holds one count only. ``.attrs`` holds ``notes`` and ``settings``.

    Examples
    --------
    >>> import numpy as np
    >>> from smelt_scaling import Endpoints, fit
    >>> N, D = (axis.ravel() for axis in np.meshgrid([1e8, 4e8, 1.6e9], [2e9, 8e9, 3.2e10]))
    >>> runs = Endpoints.from_frame(
    ...     {"N": N, "N_no_emb": 1e-9 * N**2, "D": D, "loss": 1.7 + 400 * N**-0.34 + 410 * D**-0.28})
    >>> table = parameter_conventions(fit(runs, "chinchilla", bootstrap=0))
    >>> table[["parameters", "used", "alpha", "allocation"]].round(3).values.tolist()
    [['N', True, 0.34, 0.452], ['N_no_emb', False, 0.17, 0.622]]
    """
    import pandas as pd

    columns = ["arch", "parameters", "used", "alpha", "beta", "E", "allocation", "certified"]
    rows = [{"arch": arch, **one.to_dict()} for arch, fit in study.fits.items() for one in fit.conventions]
    frame = pd.DataFrame(rows, columns=columns)
    frame.attrs = {
        "notes": [note.to_dict() for note in study.all_notes],
        "settings": {"law": study.law.name, "formula": study.law.formula, **study.settings.to_dict()},
    }
    return frame
