"""Which of some numbers are small: listed eight at a time, without a branch.

Which they are, nobody could have guessed, and a branch that is guessed wrong takes longer than
the distances to eight points.
"""

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from nearfield.sampling._block_vector import (
    SIZE,
    VECTOR,
    add_size,
    add_square,
    bits_within,
    larger,
    repeated,
)

_BYTE, _WHOLE, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES, _WHOLES = ir.VectorType(_BYTE, 8), ir.VectorType(_WHOLE, 8)
_TOGETHER = (4, 2, 1)  # so many blocks at once, as long as there are as many


def _places_of_bits() -> NDArray[np.uint8]:
    places = np.zeros((256, 8), dtype=np.uint8)
    for bits in range(256):
        chosen = [k for k in range(8) if bits >> k & 1]
        places[bits, : len(chosen)] = chosen
    return places


PLACES = _places_of_bits()
"""Which bits of a byte are set, one after the other; what is left is zero."""


@intrinsic
def list_squares(typing_context, relative, blocks, span, bounds, limit, places, powers, listed):
    """Store the squared distances of a point to those of some blocks; list the small ones.

    Those that are not above the limit, or not above the bound of the point.

    Parameters
    ----------
    relative : array of float32, shape (n_features,)
        The point.
    blocks : array of float32, shape (n_blocks, n_features, 8)
    span : tuple of int64
        The first block, how many there are, the number of the first of their points, and how many
        points are listed before.
    bounds : array of float32, shape (8 n_blocks,)
    limit : float32
    places : array of uint8
        `PLACES`
    powers : array of float32
        The distances go to its beginning.
    listed : array of int32
        The list, with room for eight more than there could be.

    Returns
    -------
    n_listed : int64
        With those that were listed before.
    """
    signature = types.int64(relative, blocks, span, bounds, types.float32, places, powers, listed)
    return signature, _listing(add_square)


@intrinsic
def list_sizes(typing_context, relative, blocks, span, bounds, limit, places, powers, listed):
    """Do so with Manhattan distances."""
    signature = types.int64(relative, blocks, span, bounds, types.float32, places, powers, listed)
    return signature, _listing(add_size)


@intrinsic
def _list_eight(typing_context, values, units, start, least, limit, places, listed, n_listed):
    """List which of eight values are within a limit, as `list_within`."""
    number = types.float32
    signature = types.int64(values, units, types.int64, number, number, places, listed, types.int64)
    return signature, _generate_eight


@njit(cache=True, nogil=True, error_model="numpy")
def list_within(values, units, least, limit, places, listed):
    """List which values are above their unit, or above the least one, by no more than a limit.

    Parameters
    ----------
    values, units : ndarray of float32, shape (n,)
    least, limit : float32
    places : ndarray of uint8
        `PLACES`
    listed : ndarray of int32, shape (n + 8,)

    Returns
    -------
    n_listed : int
    """
    n_listed, n_whole = 0, values.shape[0] // 8 * 8
    for start in range(0, n_whole, 8):
        n_listed = _list_eight(values, units, start, least, limit, places, listed, n_listed)  # type: ignore[call-arg]
    for t in range(n_whole, values.shape[0]):
        listed[n_listed] = t
        n_listed += values[t] <= max(units[t], least) + limit
    return n_listed


def _listing(add):
    def generate(context, builder, signature, arguments):
        relative, blocks, bounds, places, powers, listed = (
            context.make_array(signature.args[k])(context, builder, arguments[k])
            for k in (0, 1, 3, 5, 6, 7)
        )
        (n_features,) = cgutils.unpack_tuple(builder, relative.shape)
        first, n_blocks, number, n_before = cgutils.unpack_tuple(builder, arguments[2])
        rows = builder.bitcast(blocks.data, VECTOR.as_pointer())
        bound_rows = builder.bitcast(bounds.data, VECTOR.as_pointer())
        power_rows = builder.bitcast(powers.data, VECTOR.as_pointer())
        limit = repeated(builder, arguments[4])
        n_listed = cgutils.alloca_once_value(builder, n_before)

        def take(start, n_together):
            """Measure some blocks together: while one sum waits, the next ones go on."""
            block = builder.add(first, start)
            point = relative.data, n_features
            totals = _measured_together(builder, point, rows, block, n_together, add)
            for t, total in enumerate(totals):
                at = builder.add(start, ir.Constant(_LONG, t))
                builder.store(total, builder.gep(power_rows, [at]), align=SIZE)
                bound = builder.load(builder.gep(bound_rows, [builder.add(first, at)]), align=SIZE)
                most = larger(builder, bound, limit)
                bits = bits_within(builder, total, most)
                origin = builder.add(number, builder.mul(at, ir.Constant(_LONG, 8)))
                _list_bits(builder, bits, origin, places.data, listed.data, n_listed)

        done = ir.Constant(_LONG, 0)
        for n_together in _TOGETHER:
            width = ir.Constant(_LONG, n_together)
            n_groups = builder.sdiv(builder.sub(n_blocks, done), width)
            with cgutils.for_range(builder, n_groups) as loop:
                take(builder.add(done, builder.mul(loop.index, width)), n_together)
            done = builder.add(done, builder.mul(n_groups, width))
        return builder.load(n_listed)

    return generate


def _generate_eight(context, builder, signature, arguments):
    values, units, places, listed = (
        context.make_array(signature.args[k])(context, builder, arguments[k]).data
        for k in (0, 1, 5, 6)
    )
    start, n_before = arguments[2], arguments[7]

    def eight(row):
        pointer = builder.bitcast(builder.gep(row, [start]), VECTOR.as_pointer())
        return builder.load(pointer, align=SIZE)

    most = larger(builder, eight(units), repeated(builder, arguments[3]))
    most = builder.fadd(most, repeated(builder, arguments[4]))
    n_listed = cgutils.alloca_once_value(builder, n_before)
    bits = bits_within(builder, eight(values), most)
    _list_bits(builder, bits, start, places, listed, n_listed)
    return builder.load(n_listed)


def _list_bits(builder, bits, origin, places, listed, n_listed):
    """List the places of bits, from an origin on; the next ones are written over the rest."""
    row = builder.gep(builder.bitcast(places, _BYTES.as_pointer()), [bits])
    chosen = builder.zext(builder.load(row, align=1), _WHOLES)
    numbers = builder.add(chosen, repeated(builder, builder.trunc(origin, _WHOLE)))
    n_before = builder.load(n_listed)
    end = builder.bitcast(builder.gep(listed, [n_before]), _WHOLES.as_pointer())
    builder.store(numbers, end, align=SIZE)
    count = builder.zext(builder.ctpop(builder.trunc(bits, _BYTE)), _LONG)
    builder.store(builder.add(n_before, count), n_listed)


def _measured_together(builder, point, rows, block, n_together, add):
    """Add up over the features: the distances to the points of blocks that follow each other."""
    values, n_features = point
    zero = ir.Constant(VECTOR, [0.0] * 8)
    totals = [cgutils.alloca_once_value(builder, zero) for _ in range(n_together)]
    starts = [
        builder.mul(builder.add(block, ir.Constant(_LONG, t)), n_features)
        for t in range(n_together)
    ]
    with cgutils.for_range(builder, n_features) as loop:
        value = builder.load(builder.gep(values, [loop.index]), align=SIZE)
        value = repeated(builder, value)
        for start, total in zip(starts, totals, strict=True):
            others = builder.load(builder.gep(rows, [builder.add(start, loop.index)]), align=SIZE)
            gap = builder.fsub(value, others)
            builder.store(add(builder, builder.load(total), gap), total)
    return [builder.load(total) for total in totals]
