"""Distances to eight points at a time, as one vector of float32 numbers.

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
def squares_within(typing_context, relative, blocks, block, limit):
    """Tell which squared distances are not above a limit: bit k of the number is point k."""
    signature = types.int64(relative, blocks, types.int64, types.float32)
    return signature, _comparing(add_square)


@intrinsic
def sizes_within(typing_context, relative, blocks, block, limit):
    """Tell which Manhattan distances are not above a limit: bit k of the number is point k."""
    signature = types.int64(relative, blocks, types.int64, types.float32)
    return signature, _comparing(add_size)


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
        total = _measured(context, builder, signature, arguments, add)
        builder.store(total, place, align=SIZE)
        return context.get_dummy_value()

    return generate


def _comparing(add):
    def generate(context, builder, signature, arguments):
        total = _measured(context, builder, signature, arguments, add)
        return bits_within(builder, total, repeated(builder, arguments[3]))

    return generate


def bits_within(builder, total, limit):
    """Tell which totals are not above their limits, by the bits of a number."""
    # What is not a number, since it was too large, is not above the limit either.
    is_within = builder.fcmp_unordered("<=", total, limit)
    return builder.zext(builder.bitcast(is_within, ir.IntType(8)), ir.IntType(64))


def _measured(context, builder, signature, arguments, add):
    """Add up over the features: the distances of the point to those of the block, as a vector."""

    def array(number):
        return context.make_array(signature.args[number])(context, builder, arguments[number])

    relative, rows = array(0), builder.bitcast(array(1).data, VECTOR.as_pointer())
    (n_features,) = cgutils.unpack_tuple(builder, relative.shape)
    first = builder.mul(arguments[2], n_features)  # row of eight
    total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * 8))
    with cgutils.for_range(builder, n_features) as loop:
        value = builder.load(builder.gep(relative.data, [loop.index]), align=SIZE)
        others = builder.load(builder.gep(rows, [builder.add(first, loop.index)]), align=SIZE)
        gap = builder.fsub(repeated(builder, value), others)
        builder.store(add(builder, builder.load(total), gap), total)
    return builder.load(total)


def repeated(builder, value):
    """Make a vector of one number, eight times."""
    none = ir.Constant(ir.VectorType(value.type, 8), ir.Undefined)
    one = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
    return builder.shuffle_vector(one, none, mask)
