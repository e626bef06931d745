"""What a posterior says of new points: class probabilities, intervals, joint labels, outliers.

Works on the distances of new points to the training points, never on features; the next layer
measures them, a chunk of points at a time.
"""

from nearfield.prediction._chunks import map_chunks
from nearfield.prediction._distances import euclidean_distances_to
from nearfield.prediction._predictor import PREDICTIVES, Predictor
from nearfield.prediction.joint import draw_joint_labels

__all__ = ["PREDICTIVES", "Predictor", "draw_joint_labels", "euclidean_distances_to", "map_chunks"]
