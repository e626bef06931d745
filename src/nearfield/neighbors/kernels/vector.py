"""Distances to eight points or boxes at a time, as one vector of float32 numbers.

Written as LLVM instructions, because the compiler does not vectorise eight running sums by itself:
with ten features these take a sixth of the time of the plain loop.
"""

from collections.abc import Callable
from typing import Any

from nearfield._compile import cgutils, intrinsic, ir, types

Builder = Any  # of llvmlite, which ships no type hints, as all in this module
Value = Any
Intrinsic = tuple[Any, Callable[..., Value]]
Add = Callable[[Builder, Value, Value], Value]
Gap = Callable[[Builder, Value, Value, Value], Value]

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, 8)
_ALIGNMENT = 4  # bytes of a float32: no other alignment is assumed
_MAY_FUSE = ("contract",)  # a product and a sum, rounded once


def _add_square(builder: Builder, total: Value, gap: Value) -> Value:
    """Add squares to totals."""
    return builder.fadd(total, builder.fmul(gap, gap, flags=_MAY_FUSE), flags=_MAY_FUSE)


def _add_size(builder: Builder, total: Value, gap: Value) -> Value:
    """Add sizes to totals."""
    takes_vector = ir.FunctionType(_VECTOR, [_VECTOR])
    size = builder.module.declare_intrinsic("llvm.fabs.v8f32", (), takes_vector)
    return builder.fadd(total, builder.call(size, [gap]))


def _keeping(add: Add, gap: Gap) -> Callable[..., int]:
    """Make a function that measures to eight points or boxes, and tells which are in reach.

    It takes the point, the blocks of points or nodes of boxes, the number of one of these, an
    array of eight numbers for the powers of the distances, bounds, and a limit. One of the eight
    is in reach if its power is not above the limit, or not above the bound of its own: bounds
    has eight numbers a block or node, or is None. Bit k of the result stands for number k.
    """

    @intrinsic
    def keep(
        typing_context: Any, point: Any, rows: Any, row: Any, powers: Any, bounds: Any, limit: Any
    ) -> Intrinsic:
        return types.int64(point, rows, types.int64, powers, bounds, types.float32), generate

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Value:
        powers = context.make_array(signature.args[3])(context, builder, arguments[3]).data
        total = _measured(context, builder, signature, arguments, add, gap)
        builder.store(total, builder.bitcast(powers, _VECTOR.as_pointer()), align=_ALIGNMENT)
        limit = _repeated(builder, arguments[5])
        if not isinstance(signature.args[4], types.NoneType):
            bounds = context.make_array(signature.args[4])(context, builder, arguments[4]).data
            rows = builder.bitcast(bounds, _VECTOR.as_pointer())
            bound = builder.load(builder.gep(rows, [arguments[2]]), align=_ALIGNMENT)
            limit = _larger(builder, bound, limit)
        return _bits_within(builder, total, limit)

    return keep


def _bits_within(builder: Builder, total: Value, limit: Value) -> Value:
    """Tell which totals are not above their limits, by the bits of a number."""
    # What is not a number, since it was too large, is not above the limit either.
    is_within = builder.fcmp_unordered("<=", total, limit)
    return builder.zext(builder.bitcast(is_within, ir.IntType(8)), ir.IntType(64))


def _measured(
    context: Any, builder: Builder, signature: Any, arguments: Any, add: Add, gap: Gap
) -> Value:
    """Add up over the features: the distances of the point to those of the block, as a vector."""

    def array(number: int) -> Any:
        return context.make_array(signature.args[number])(context, builder, arguments[number])

    relative, rows = array(0), builder.bitcast(array(1).data, _VECTOR.as_pointer())
    (n_features,) = cgutils.unpack_tuple(builder, relative.shape)
    first = builder.mul(arguments[2], n_features)
    total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * 8))
    with cgutils.for_range(builder, n_features) as loop:
        value = builder.load(builder.gep(relative.data, [loop.index]), align=_ALIGNMENT)
        apart = gap(builder, _repeated(builder, value), rows, builder.add(first, loop.index))
        builder.store(add(builder, builder.load(total), apart), total)
    return builder.load(total)


def _gap_to_points(builder: Builder, value: Value, rows: Value, place: Value) -> Value:
    return builder.fsub(value, builder.load(builder.gep(rows, [place]), align=_ALIGNMENT))


def _gap_to_boxes(builder: Builder, value: Value, rows: Value, place: Value) -> Value:
    """Measure how far a value is below the lowest, or above the highest: zero between them."""
    two, one = ir.Constant(place.type, 2), ir.Constant(place.type, 1)
    first = builder.mul(place, two)
    low = builder.load(builder.gep(rows, [first]), align=_ALIGNMENT)
    high = builder.load(builder.gep(rows, [builder.add(first, one)]), align=_ALIGNMENT)
    below, above = builder.fsub(low, value), builder.fsub(value, high)
    # What is not a number, since it was too large, becomes zero: no box is missed.
    outside = _larger(builder, below, above)
    return _larger(builder, outside, ir.Constant(_VECTOR, [0.0] * 8))


def _larger(builder: Builder, first: Value, second: Value) -> Value:
    """Take the larger ones of two vectors; of what is not a number, the second."""
    return builder.select(builder.fcmp_ordered(">", first, second), first, second)


def _repeated(builder: Builder, value: Value) -> Value:
    """Make a vector of one number, eight times."""
    none = ir.Constant(ir.VectorType(value.type, 8), ir.Undefined)
    one = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
    return builder.shuffle_vector(one, none, mask)


keep_squares = _keeping(_add_square, _gap_to_points)
"""By the squared distances to a block of points."""
keep_sizes = _keeping(_add_size, _gap_to_points)
"""By the Manhattan distances to a block of points."""
keep_box_squares = _keeping(_add_square, _gap_to_boxes)
"""By the squared distances to the boxes of a node, shape (n_features, 2, 8): lows and highs."""
keep_box_sizes = _keeping(_add_size, _gap_to_boxes)
"""By the Manhattan distances to these boxes."""
