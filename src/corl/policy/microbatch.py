"""Cut an update into micro-batches by a budget of tokens."""

from collections.abc import Sequence


def microbatches(lengths: Sequence[int], budget: int, *, is_padded: bool = True) -> list[list[int]]:
    """Numbers of the entries that are forwarded together.

    lengths: tokens of each entry. A micro-batch takes at most `budget` tokens: the longest entry's
    times their number where they are padded, else their sum. Longest entries come first:
    neighbours pad little, and a budget that is too large for the memory fails at once. An entry
    longer than the budget stands alone. Ties keep their order, so the cut depends on nothing but
    its input.
    """
    groups: list[list[int]] = []
    longest = total = 0
    for entry in sorted(range(len(lengths)), key=lambda entry: (-lengths[entry], entry)):
        if groups:
            grown = (len(groups[-1]) + 1) * longest if is_padded else total + lengths[entry]
            if grown <= budget:
                groups[-1].append(entry)
                total += lengths[entry]
                continue
        groups.append([entry])
        longest = total = lengths[entry]
    return groups


def within_budget(shared: int, lengths: Sequence[int], budget: int) -> list[int]:
    """Sizes of runs of consecutive entries that share `shared` tokens and fit the budget.

    Runs are about equal; an entry that does not fit stands alone.
    """
    for runs in range(1, len(lengths) + 1):
        most = -(-len(lengths) // runs)
        parts = [lengths[start : start + most] for start in range(0, len(lengths), most)]
        if most == 1 or max(shared + sum(part) for part in parts) <= budget:
            return [len(part) for part in parts]
    return []
