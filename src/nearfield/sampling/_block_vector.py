"""Distances to eight points or boxes at a time, as one vector of float32 numbers.

Written in the compiler's own terms, for it does not find eight sums to be one vector by itself: by
these the distances take a quarter of the time.
"""

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_FLOAT = ir.FloatType()
VECTOR = ir.VectorType(_FLOAT, 8)
SIZE = 4  # bytes of a float32: no other alignment is assumed
_MAY_FUSE = ("contract",)  # a product and a sum, rounded once


@intrinsic
def store_squares(typing_context, relative, blocks, block, powers, place):
    """Store the squared distances of a point to those of a block, eight numbers from a place on.

    relative is the point, shape (n_features,), blocks has the shape (n_blocks, n_features, 8), and
    powers is one row. All are of float32.
    """
    signature = types.void(relative, blocks, types.int64, powers, types.int64)
    return signature, _storing(add_square)


@intrinsic
def store_sizes(typing_context, relative, blocks, block, powers, place):
    """Store the Manhattan distances; the arguments are those of `store_squares`."""
    signature = types.void(relative, blocks, types.int64, powers, types.int64)
    return signature, _storing(add_size)


@intrinsic
def keep_squares(typing_context, relative, blocks, block, powers, bounds, limit):
    """Store the squared distances in the first eight places; tell which are not too large.

    Those that are not above the limit, or not above the bound of the point: bounds has eight
    numbers a block, or is None. Bit k of the number is point k.
    """
    signature = types.int64(relative, blocks, types.int64, powers, bounds, types.float32)
    return signature, _keeping(add_square, _gap_to_points)


@intrinsic
def keep_sizes(typing_context, relative, blocks, block, powers, bounds, limit):
    """Do so with Manhattan distances."""
    signature = types.int64(relative, blocks, types.int64, powers, bounds, types.float32)
    return signature, _keeping(add_size, _gap_to_points)


@intrinsic
def keep_box_squares(typing_context, point, boxes, node, powers, bounds, limit):
    """Do as `keep_squares` with the boxes of a node, by the squared distance of the nearest place.

    boxes has the shape (n_nodes, n_features, 2, 8): the lows and the highs of eight boxes.
    """
    signature = types.int64(point, boxes, types.int64, powers, bounds, types.float32)
    return signature, _keeping(add_square, _gap_to_boxes)


@intrinsic
def keep_box_sizes(typing_context, point, boxes, node, powers, bounds, limit):
    """Do so with Manhattan distances."""
    signature = types.int64(point, boxes, types.int64, powers, bounds, types.float32)
    return signature, _keeping(add_size, _gap_to_boxes)


@intrinsic
def fill_gaps(typing_context, points, point, centres, centre, relative):
    """Fill in a row of points less a row of centres, of double precision, in single precision.

    Four features at a time, the last four with those that remain: a loop over few of them would
    take as long as the distances.
    """
    signature = types.void(points, types.int64, centres, types.int64, relative)
    return signature, _fill_gaps


def _fill_gaps(context, builder, signature, arguments):
    points, centres, relative = (
        context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 2, 4)
    )
    (n_features,) = cgutils.unpack_tuple(builder, relative.shape)
    rows = [
        builder.gep(array.data, [builder.mul(arguments[k], n_features)])
        for array, k in ((points, 1), (centres, 3))
    ]

    def fill(at, kinds):
        def place(row, kind):
            return builder.bitcast(builder.gep(row, [at]), kind.as_pointer())

        double, single = kinds
        ours, theirs = (builder.load(place(row, double), align=2 * SIZE) for row in rows)
        gaps = builder.fptrunc(builder.fsub(ours, theirs), single)
        builder.store(gaps, place(relative.data, single), align=SIZE)

    four = ir.Constant(n_features.type, 4)
    last = builder.sub(n_features, four)
    with builder.if_else(builder.icmp_signed("<", last, last.type(0))) as (is_short, is_long):
        with is_short, cgutils.for_range(builder, n_features) as loop:
            fill(loop.index, (ir.DoubleType(), _FLOAT))
        with is_long:
            n_groups = builder.sdiv(builder.add(n_features, four.type(3)), four)
            with cgutils.for_range(builder, n_groups) as loop:
                at = builder.mul(loop.index, four)
                at = builder.select(builder.icmp_signed("<", at, last), at, last)
                fill(at, (ir.VectorType(ir.DoubleType(), 4), ir.VectorType(_FLOAT, 4)))
    return context.get_dummy_value()


def add_square(builder, total, gap):
    """Add squares to totals."""
    return builder.fadd(total, builder.fmul(gap, gap, flags=_MAY_FUSE), flags=_MAY_FUSE)


def add_size(builder, total, gap):
    """Add sizes to totals."""
    takes_vector = ir.FunctionType(VECTOR, [VECTOR])
    size = builder.module.declare_intrinsic("llvm.fabs.v8f32", (), takes_vector)
    return builder.fadd(total, builder.call(size, [gap]))


def _storing(add):
    def generate(context, builder, signature, arguments):
        powers = context.make_array(signature.args[3])(context, builder, arguments[3]).data
        place = builder.bitcast(builder.gep(powers, [arguments[4]]), VECTOR.as_pointer())
        total = _measured(context, builder, signature, arguments, add, _gap_to_points)
        builder.store(total, place, align=SIZE)
        return context.get_dummy_value()

    return generate


def _keeping(add, gap):
    def generate(context, builder, signature, arguments):
        powers = context.make_array(signature.args[3])(context, builder, arguments[3]).data
        total = _measured(context, builder, signature, arguments, add, gap)
        builder.store(total, builder.bitcast(powers, VECTOR.as_pointer()), align=SIZE)
        limit = repeated(builder, arguments[5])
        if not isinstance(signature.args[4], types.NoneType):
            bounds = context.make_array(signature.args[4])(context, builder, arguments[4]).data
            rows = builder.bitcast(bounds, VECTOR.as_pointer())
            bound = builder.load(builder.gep(rows, [arguments[2]]), align=SIZE)
            limit = larger(builder, bound, limit)
        return bits_within(builder, total, limit)

    return generate


def bits_within(builder, total, limit):
    """Tell which totals are not above their limits, by the bits of a number."""
    # What is not a number, since it was too large, is not above the limit either.
    is_within = builder.fcmp_unordered("<=", total, limit)
    return builder.zext(builder.bitcast(is_within, ir.IntType(8)), ir.IntType(64))


def _measured(context, builder, signature, arguments, add, gap):
    """Add up over the features: the distances of the point to those of the block, as a vector."""

    def array(number):
        return context.make_array(signature.args[number])(context, builder, arguments[number])

    relative, rows = array(0), builder.bitcast(array(1).data, VECTOR.as_pointer())
    (n_features,) = cgutils.unpack_tuple(builder, relative.shape)
    first = builder.mul(arguments[2], n_features)
    total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * 8))
    with cgutils.for_range(builder, n_features) as loop:
        value = builder.load(builder.gep(relative.data, [loop.index]), align=SIZE)
        apart = gap(builder, repeated(builder, value), rows, builder.add(first, loop.index))
        builder.store(add(builder, builder.load(total), apart), total)
    return builder.load(total)


def _gap_to_points(builder, value, rows, place):
    return builder.fsub(value, builder.load(builder.gep(rows, [place]), align=SIZE))


def _gap_to_boxes(builder, value, rows, place):
    """Measure how far a value is below the lowest, or above the highest: zero between them."""
    two, one = ir.Constant(place.type, 2), ir.Constant(place.type, 1)
    first = builder.mul(place, two)
    low = builder.load(builder.gep(rows, [first]), align=SIZE)
    high = builder.load(builder.gep(rows, [builder.add(first, one)]), align=SIZE)
    below, above = builder.fsub(low, value), builder.fsub(value, high)
    # What is not a number, since it was too large, becomes zero: no box is missed.
    outside = larger(builder, below, above)
    return larger(builder, outside, ir.Constant(VECTOR, [0.0] * 8))


def larger(builder, first, second):
    """Take the larger ones of two vectors; of what is not a number, the second."""
    return builder.select(builder.fcmp_ordered(">", first, second), first, second)


def repeated(builder, value):
    """Make a vector of one number, eight times."""
    none = ir.Constant(ir.VectorType(value.type, 8), ir.Undefined)
    one = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
    return builder.shuffle_vector(one, none, mask)
