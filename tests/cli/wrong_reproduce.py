"""Wrong calls of `pluribus reproduce`."""

from .cases import case
from .files import file

ONE = "reproduce variance/figure-2"

PAPERS = [
    case("nothing to reproduce", "reproduce", "name what to run, as in variance/table-1 or variance/ALL|--list"),
    case("an unknown recipe", "reproduce variance/tabel-1", "no recipe 'variance/tabel-1': did you mean 'variance/table-1'"),
    case("an unknown paper", "reproduce nature/table-1", "no recipe 'nature/table-1'|--list"),
    case("a paper alone", "reproduce variance", "variance is a paper: variance/ALL runs all of it"),
    case("an unknown scale", f"{ONE} --scale huge", "--scale must be one of smoke, cpu, paper, got 'huge'"),
    case("reproducing with no workers", f"{ONE} --workers 0", "--workers must be a number of processes"),
    case("reproducing into a file", f"{ONE} --out a", "cannot make the folder a/variance/results|--out", file("a", "mine")),
    case("working in a file", f"{ONE} --work a --out b", "cannot make the folder a/variance|--work", file("a", "mine")),
    case("a page of nothing", f"{ONE} --page --out a", "there is nothing at scale smoke in a: leave --page out"),
    case(
        "reproducing over something else",
        f"{ONE} --out a --work b",
        "a/variance/results/figure-2.smoke.json does not hold what `pluribus reproduce` leaves",
        file("a/variance/results/figure-2.smoke.json", '{"format": 2}'),
    ),
    case(
        "reproducing over half a file",
        f"{ONE} --out a --work b",
        "figure-2.smoke.json does not hold",
        file("a/variance/results/figure-2.smoke.json", '{"format":'),
    ),
    case(
        "a table that is not run at this scale",
        "reproduce mimo/table-3 --scale cpu",
        "mimo/table-3 cpu is not run at this scale: ImageNet",
    ),
    case(
        "real data that are not there",
        "reproduce variance/table-1 --scale cpu --data-dir nowhere",
        "mnist is not complete in nowhere",
    ),
]
