"""Wrong comparisons, judgements and reports."""

from .cases import case
from .files import file

COMPARE = "compare --data digits --model mlp --rows 64 --epochs 1"

JUDGING = [
    case("a risk for a regression", "calibrate run --risk 0.1", "--risk is for classes|--coverage", run="houses"),
    case("a coverage above one", "calibrate run --coverage 90", "coverage must be between 0 and 1, got 90", run="digits"),
    case("a scale for classes", "calibrate run --scale absolute", "--scale is for the intervals", run="flowers"),
    case("foreign rows without an alarm", "calibrate run --ood noise", "--false-alarms", run="digits"),
    case("rules from training rows", "calibrate run --split train", "not trained on|train", run="digits"),
    case("unknown sets", "calibrate run --sets best", "best|raps", run="digits"),
    case("unknown attack", "evaluate run --attack pgd", "no attack 'pgd'|linf", run="digits"),
    case("unknown option of an attack", "evaluate run --attack linf:eps=1", "linf has no option 'eps'|epsilon", run="digits"),
    case("an attack with no steps", "evaluate run --attack linf:step=0", "attack linf: step must be positive", run="digits"),
    case("an attack in letters", "evaluate run --attack linf:epsilon=big", "attack linf|big", run="digits"),
    case(
        "unknown corruptions", "evaluate run --corruptions some", "corruptions must be none, standard or all|some", run="digits"
    ),
    case("corruptions of a table", "evaluate run --corruptions standard", "images|flowers", run="flowers"),
    case("an attack on a table", "evaluate run --attack linf", "images|flowers", run="flowers"),
    case("out-of-distribution rows of a regression", "evaluate run --ood noise", "regression|leave them out", run="houses"),
    case(
        "an unknown out-of-distribution set",
        "evaluate run --ood fasion-mnist --no-cost",
        "no data set 'fasion-mnist'|fashion-mnist",
        run="digits",
    ),
    case(
        "an OOD set of another kind",
        "evaluate run --ood uci-wine",
        "uci-wine has other inputs than digits",
        run="digits",
    ),
    case("noise for a table", "evaluate run --ood noise", "'noise' is made of images|flowers", run="flowers"),
    case(
        "no rows to corrupt",
        "evaluate run --corruptions all --shift-rows 0",
        "shift_rows must be at least 1, got 0",
        run="digits",
    ),
    case("rows to attack in letters", "evaluate run --attack-rows few", "valid integer|--attack-rows", run="digits"),
    case("a base without corruptions", "evaluate run --base run", "--base|needs --corruptions", run="digits"),
    case("a base that is not there", "evaluate run --corruptions all --base none", "no run none", run="digits"),
    case("comparing an unknown method", f"{COMPARE} --methods inner,mino", "no method 'mino': did you mean 'mimo'"),
    case("comparing a method twice", f"{COMPARE} --methods inner,inner", "inner-seed0 more than once"),
    case("comparing nothing", f"{COMPARE} --methods ''", "methods must be all, or names between commas"),
    case("an unknown budget", f"{COMPARE} --methods inner --budget flops", "no budget 'flops'|training-flops"),
    case(
        "a budget without width",
        "compare --model densenet40 --methods inner --budget parameters",
        "densenet40 has no option `width`",
    ),
    case("no seeds", f"{COMPARE} --methods inner --seeds 0", "seeds must be at least 1, got 0"),
    case("comparing on unknown data", "compare --data minst", "no data set 'minst'|'mnist'"),
    case("comparing with no workers", f"{COMPARE} --workers none", "--workers must be a number|'none'"),
    case("comparing with no such setting", f"{COMPARE} --epoch 3", "No such option: --epoch|--epochs"),
    case("comparing by one method", f"{COMPARE} --method inner", "--method|--methods"),
    case("comparing a table by corruptions", "compare --data four-gaussians --corruptions all", "images|four-gaussians"),
    case("going on with other settings", "compare --resume there --epochs 3", "--resume|leave the other settings out"),
    case("going on with other judging", "compare --resume there --corruptions all", "--resume|leave the other settings out"),
    case("going on with other seeds", "compare --resume there --seeds 9", "--resume|leave the other settings out"),
    case("comparing with an unknown out-of-distribution set", f"{COMPARE} --ood fasion-mnist", "no data set 'fasion-mnist'"),
    case("going on with no comparison", "compare --resume there", "there is no comparison: it has no compare.yaml"),
    case(
        "going on with a damaged one",
        "compare --resume c",
        "compare.yaml is damaged",
        file("c/compare.yaml", "budget: epochs\n"),
    ),
    case("a report of nothing", "report there", "there is no file there"),
    case("a report of something else", "report a.json", "a.json does not hold the results", file("a.json", '{"format": 2}')),
    case("a report of no JSON", "report a.json", "a.json does not hold the results", file("a.json", "{")),
]
