"""What the results say that the papers do not, in sentences made from the results."""

from ..recipe import Json


def departures(found: dict[str, Json]) -> list[str]:
    return []


def learnt(found: dict[str, Json]) -> list[str]:
    return []
