"""Pictures of fitted models, in scikit-learn's Display form: `from_estimator`, an `ax`.

Nothing is shown or saved on its own. Matplotlib is imported when something is drawn, and colours
are those of Okabe and Ito, which colour-blind people can tell apart.

`PosteriorDisplay`, `TraceDisplay` and `RankDisplay` show what was inferred; `LeaveOneOutDisplay`
how k was chosen; `ClassMapDisplay`, `ReliabilityDisplay`, `InfluenceDisplay` and
`ExplanationDisplay` what is predicted, how far to trust it, and why. `expected_calibration_error`
is the number beside the picture.
"""

from nearfield.plotting.calibration import expected_calibration_error
from nearfield.plotting.chains import RankDisplay, TraceDisplay
from nearfield.plotting.class_map import ClassMapDisplay
from nearfield.plotting.explanation import ExplanationDisplay
from nearfield.plotting.influence import InfluenceDisplay
from nearfield.plotting.leave_one_out import LeaveOneOutDisplay
from nearfield.plotting.posterior import PosteriorDisplay
from nearfield.plotting.reliability import ReliabilityDisplay

__all__ = [
    "ClassMapDisplay",
    "ExplanationDisplay",
    "InfluenceDisplay",
    "LeaveOneOutDisplay",
    "PosteriorDisplay",
    "RankDisplay",
    "ReliabilityDisplay",
    "TraceDisplay",
    "expected_calibration_error",
]
