"""Choosing places for the names beside the points of a scatter plot."""

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in pixels."""


def arrange_labels(choices: list[list[Box]], marks: list[Box], taken: list[Box], room: Box) -> list[int]:
    """Choose one of its places for each label, so that labels cover little and stand far from other points.

    The labels take their best free places one after the other. This is repeated in several orders, and the best result is kept.

    Args:
        choices: the boxes of the possible places of each label, the preferred first.
        marks: a box around the point of each label; a label close to another point misleads.
        taken: boxes that labels should not cover.
        room: the box that labels should stay in.

    Returns:
        The index of the chosen place for each label.

    >>> left, right = (0, 0, 2, 1), (4, 0, 6, 1)
    >>> arrange_labels([[left, right]], marks=[(3, 0, 3, 1)], taken=[(1, 0, 1, 1)], room=(0, 0, 9, 9))
    [1]
    """

    def rate_place(index: int, rank: int, box: Box) -> float:
        outside = box[0] < room[0] or box[1] < room[1] or box[2] > room[2] or box[3] > room[3]
        covers = sum(_overlaps(box, other) for other in taken)
        misleads = sum(_overlaps(box, mark) for place, mark in enumerate(marks) if place != index)
        return 100.0 * outside + 10.0 * covers + 3.0 * misleads + 0.1 * rank

    own = [[rate_place(index, rank, box) for rank, box in enumerate(boxes)] for index, boxes in enumerate(choices)]

    def place_in_order(order: list[int]) -> tuple[float, list[int]]:
        total, chosen = 0.0, [0] * len(choices)
        placed: list[Box] = []
        for index in order:
            boxes = choices[index]
            costs = [
                cost + 10.0 * sum(_overlaps(box, other) for other in placed)
                for cost, box in zip(own[index], boxes, strict=True)
            ]
            chosen[index] = min(range(len(costs)), key=costs.__getitem__)
            total += costs[chosen[index]]
            placed.append(boxes[chosen[index]])
        return total, chosen

    count = len(choices)
    by_x, by_y = (sorted(range(count), key=lambda i: choices[i][0][side]) for side in (0, 1))
    orders = [order[turn:] + order[:turn] for order in (by_x, by_x[::-1], by_y, by_y[::-1]) for turn in range(0, count, 4)]
    return min((place_in_order(order) for order in orders), key=lambda found: found[0])[1]


def _overlaps(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]
