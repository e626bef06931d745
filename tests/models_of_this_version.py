"""Write small model files and what they predict: `python tests/models_of_this_version.py folder`.

Run once a released version of the format; the files stay, and later versions must read them.
"""

import sys
from pathlib import Path

import numpy as np
from fuzz_files import NEW, models

from nearfield import save

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "points.npy", NEW)
    for name, model, new in models():
        if new is NEW:
            save(model, folder / f"{name}.nearfield")
            np.save(folder / f"{name}.npy", model.predict_proba(new))
