"""A page about one's own data and model: cross-validate, gather the results, render them.

`cross_validate` predicts every sample by models that have not seen it, `gather` turns the
predictions into a `Report` of plain arrays and names, and `render_page` turns that into one HTML
file that needs nothing else. `predictions_table` gives the predictions as a frame.
"""

from nearfield.report.describe import describe_data
from nearfield.report.gather import Source, gather, predictions_table
from nearfield.report.measures import confusion_matrix, summarize_losses
from nearfield.report.page import is_report, render_page
from nearfield.report.pls import PLS_COMPONENTS, PLSDiscriminantAnalysis
from nearfield.report.results import Report
from nearfield.report.validation import Predictions, cross_validate, predict_new
from nearfield.spectra.axis import feature_axis

__all__ = [
    "PLS_COMPONENTS",
    "PLSDiscriminantAnalysis",
    "Predictions",
    "Report",
    "Source",
    "confusion_matrix",
    "cross_validate",
    "describe_data",
    "feature_axis",
    "gather",
    "is_report",
    "predict_new",
    "predictions_table",
    "render_page",
    "summarize_losses",
]
