"""Wrong benchmarks."""

from .cases import case
from .files import file

SMALL = "bench --part table --networks mlp --methods inner --repeats 1 --batch 2"

BENCH = [
    case("an unknown part", "bench --part tabel", "no part 'tabel': did you mean 'table'"),
    case("no part", "bench --part ''", "parts must be names between commas: targets, table, growth"),
    case("benching an unknown network", "bench --networks lenet", "no network 'lenet': did you mean 'lenet5'"),
    case("benching no network", "bench --networks ,", "networks must be names between commas: mlp"),
    case("benching an unknown method", "bench --methods inner,mino", "no method 'mino': did you mean 'mimo'"),
    case("benching no method", "bench --methods ''", "methods must be names between commas: single"),
    case("nothing to bench", "bench --part growth --methods maxout", "nothing in growth for these networks and methods"),
    case("no repeats", f"{SMALL} --repeats 0", "repeats must be at least 1, got 0"),
    case("repeats in letters", f"{SMALL} --repeats often", "valid integer|--repeats"),
    case("no rows to bench", f"{SMALL} --batch -1", "batch must be at least 1, got -1"),
    case("no threads", f"{SMALL} --threads 0", "threads must be at least 1, got 0"),
    case("threads without end", f"{SMALL} --threads 100000", "threads must be at most|the cores of this machine, got 100000"),
    case("bench into a file", f"{SMALL} --out a", "a is a file: name a folder with --out", file("a", "mine")),
    case("bench below a file", f"{SMALL} --out a/b", "cannot make the folder a/b: Not a directory|--out", file("a", "mine")),
    case("bench where nothing can be", f"{SMALL} --out /proc/x", "cannot make the folder /proc/x|--out"),
    case(
        "bench over something else",
        f"{SMALL} --out a",
        "a/bench.json does not hold results of `pluribus bench`",
        file("a/bench.json", '{"format": 1}'),
    ),
    case("bench over half a file", f"{SMALL} --out a", "a/bench.json does not hold", file("a/bench.json", '{"format":')),
    case("nothing benched before", "bench --part none --out a", "there are no results in a|--out"),
    case("an unknown contender", "bench tables --smoke --contenders lightgmb", "contender 'lightgmb': did you mean 'lightgbm'"),
    case("no contender", "bench tables --smoke --contenders ,", "contenders must be names between commas: single"),
    case("no table", "bench tables --smoke --tables ,", "tables must be names or paths between commas, such as uci-concrete"),
    case("a table of classes", "bench tables --tables digits", "digits has no splits of its rows: name a table"),
    case("no file of a table", "bench tables --tables no.csv", "there is no file or folder no.csv"),
    case("no trials", "bench tables --smoke --trials 0", "trials must be from 1 to 100,000, got 0"),
    case("tables into a file", "bench tables --smoke --out a", "a is a file: name a folder with --out", file("a", "mine")),
    case("tables over something else", "bench tables --smoke --out a", "a is not empty|--out", file("a/b", "mine")),
    case("docs missing", f"{SMALL} --docs no.md", "cannot read the document no.md: No such file"),
    case("docs without marks", f"{SMALL} --docs a.md", "a.md has no place for the cost table: put", file("a.md", "# Mine")),
    case(
        "docs binary",
        f"{SMALL} --docs a.md",
        "cannot read the document a.md: it is not a text file",
        file("a.md", b"\xff\xfe\x00"),
    ),
]
