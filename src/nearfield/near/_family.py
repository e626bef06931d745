"""What every family of fields over the points of a near field takes from it."""

from nearfield.near.field import NearField


class FamilyOfNearField:
    """A mixin for families that are made of a near field: what they share of a `FieldFamily`."""

    near_field: NearField

    scale_name = "sigma"
    is_discrete = False

    @property
    def kernel(self) -> str:
        """The kernel of the field."""
        return self.near_field.kernel

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with sigma."""
        return self.near_field.is_smooth

    @property
    def n_classes(self) -> int:
        """The number of classes G."""
        return self.near_field.n_classes

    @property
    def longest(self) -> float:
        """The largest distance between training points, about."""
        return self.near_field.longest

    @property
    def scale_range(self) -> tuple[float, float]:
        """From where only nearest neighbours count to where all points count alike."""
        return self.near_field.scale_range
