"""Cut rows of unequal length into micro-batches by a budget of padded tokens."""

from collections.abc import Sequence


def microbatches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Row numbers grouped so that rows x longest row of a group is at most `budget`.

    Longest rows come first: neighbours pad little, and a budget that is too
    large for the memory fails at once. A row longer than the budget stands
    alone. Ties keep their order, so the cut depends on nothing but its input.
    """
    groups: list[list[int]] = []
    longest = 0
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if groups and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(row)
        else:
            groups.append([row])
            longest = lengths[row]
    return groups
