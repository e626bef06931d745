"""An exact index of points in a tree of boxes, many times faster than a search by brute force."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearfield.distances.neighbors import in_chunks
from nearfield.sampling.box_search import box_neighbors, fill_bounds
from nearfield.sampling.box_tree import WIDTH, BoxTree, split_points


@dataclass(frozen=True, eq=False)
class BoxIndex:
    """An index over points that finds the nearest of them, by Euclid or Manhattan.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        The points in the order of the tree.
    points : ndarray, shape (n, n_features)
        In that order.
    tree : BoxTree
    """

    order: NDArray[np.int64] = field(repr=False)
    points: NDArray[np.float64] = field(repr=False)
    tree: BoxTree = field(repr=False)

    @classmethod
    def of(cls, points: NDArray[np.float64], *, power: int = 2) -> "BoxIndex":
        """Put points, shape (n, n_features), into boxes; 1 is for Manhattan distances."""
        origin = np.asarray(points.mean(axis=0), dtype=np.float64)
        with np.errstate(over="ignore"):  # infinities are as far as can be
            single = (points - origin).astype(np.float32)
        order = np.empty(len(points), dtype=np.int64)
        split_points(single, order)
        blocks = _as_blocks(single[order])
        boxes, sizes = _boxes_around(blocks)
        starts = np.concatenate([[0, 0], np.cumsum(sizes[1:-1])])
        tree = BoxTree(origin, blocks, boxes, sizes, starts, len(points), power)
        return cls(order, np.ascontiguousarray(points[order], dtype=np.float64), tree)

    def query(
        self,
        points: NDArray[np.float64],
        n_neighbors: int,
        *,
        n_jobs: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find the nearest points, as `NeighborIndex.query`; of equally far ones the first rows."""

        def find(some: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            shape = len(some), n_neighbors
            distances, index = np.empty(shape), np.empty(shape, dtype=np.int64)
            targets = np.ascontiguousarray(some, dtype=np.float64)
            box_neighbors(targets, self.tree, self.points, self.order, distances, index)
            return distances, index

        return in_chunks(find, points, n_jobs=n_jobs, advance=advance)

    def bounds_within(
        self, reaches: NDArray[np.float64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Turn how far each point reaches into bounds of powers of single distances.

        A new point that is beyond the bound of a point, or of a box around it, is out of reach.

        Parameters
        ----------
        reaches : ndarray, shape (n,)
            Not in the order of the tree.

        Returns
        -------
        box_bounds : ndarray of float32, shape (8 n_nodes,)
        point_bounds : ndarray of float32, shape (8 n_blocks,)
        """
        gaps = np.abs(self.points - self.tree.origin)
        lengths = gaps.sum(axis=1) if self.tree.power == 1 else np.linalg.norm(gaps, axis=1)
        bounds = np.empty(len(reaches), dtype=np.float32)
        fill_bounds(reaches[self.order], lengths, self.points.shape[1], self.tree.power, bounds)
        point_bounds = of_boxes = _filled_up(bounds, 0.0)
        levels = []
        for _ in self.tree.sizes[1:]:
            of_boxes = _filled_up(of_boxes.reshape(-1, WIDTH).max(axis=1), 0.0)
            levels.append(of_boxes)
        return np.concatenate(levels), point_bounds

    def share_near(self, points: NDArray[np.float64], n_neighbors: int) -> float:
        """Tell which part of the blocks a search for neighbours has to look into at least."""
        farthest = self.query(points, n_neighbors)[0][:, -1]
        nodes = self.tree.boxes[: self.tree.sizes[1]]
        lows, highs = (_as_rows(nodes[:, :, end])[: self.tree.sizes[0]] for end in (0, 1))
        shares = []
        for point, reach in zip(points - self.tree.origin, farthest, strict=True):
            gaps = np.maximum(np.maximum(lows - point, point - highs), 0.0)
            shares.append(np.mean((gaps**self.tree.power).sum(axis=1) <= reach**self.tree.power))
        return float(np.mean(shares))


def _as_blocks(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Lay points out eight at a time and feature by feature, shape (n_blocks, n_features, 8).

    What fills the last block is as far as can be.
    """
    filled = _filled_up(points, np.inf)
    blocks = filled.reshape(-1, WIDTH, points.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(blocks)


def _as_rows(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Undo `_as_blocks`."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])


def _boxes_around(blocks: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Find the boxes around blocks, around eight of these boxes, and so on, up to one node.

    Returns
    -------
    boxes : ndarray of float32, shape (n_nodes, n_features, 2, 8)
    sizes : ndarray of int, shape (n_levels,)
        The numbers of blocks, of nodes of eight blocks, and so on.
    """
    levels: list[NDArray[np.float32]] = []
    lows = highs = blocks
    while len(levels) < 2 or len(levels[-1]) > 1:
        lows = _as_blocks(lows.min(axis=2))
        # What fills a block is as far as can be, but in no box.
        highs = _as_blocks(np.where(np.isposinf(highs), -np.inf, highs).max(axis=2))
        levels.append(np.stack([lows, highs], axis=2))
    sizes = [len(blocks), *map(len, levels)]
    return np.ascontiguousarray(np.concatenate(levels)), np.array(sizes)


def _filled_up(rows: NDArray[np.float32], value: float) -> NDArray[np.float32]:
    n_missing = -len(rows) % WIDTH
    return np.concatenate([rows, np.full((n_missing, *rows.shape[1:]), value, dtype=np.float32)])
