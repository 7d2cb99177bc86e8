"""Pages, tables and figures from the results of a comparison. This package reads JSON and nothing else.

`results.json` holds

    digest           of the other keys: the file is refused if they were changed
    format           1
    title            "digits · small-cnn"
    command          the command that was typed, to run it again
    data             name, task ("classification" | "regression"), classes [names], shape, train, test (numbers of rows)
    judged_by        "test", or "validation" if there are no test rows
    decided_by       what gain, share and recommendation are of: "calibrated_nll", or "nll" if an older version judged runs
    model            "small-cnn"
    budget           {"kind": "epochs" | "training-flops" | "deployed-flops" | "parameters", "text": what was held equal}
    seeds            [0, 1]
    settings         the configuration that all runs share
    versions, machine, seconds
    methods          a list, in the order of the table; each one
        name         "mimo:members=3", unique
        spec         "MIMO(members=3)"
        about        one sentence that describes the method
        equivalence  None, or one sentence: training cannot make the method differ from a simpler one
        members      number of members (or draws)
        epochs       number of training epochs, the mean over seeds
        scores       {score: number}: accuracy, nll, calibrated_nll, brier, ece, adaptive_ece, classwise_ece, aurc,
                     accuracy_at_80; of a regression rmse, nll, calibrated_nll, crps, coverage_50, coverage_95, width_95
        member_scores  {score: number}: of one member alone, the mean over members (accuracy, nll | rmse)
        tempered     None, or {score: number} after temperature scaling on validation rows, and "temperature"
        gain         None, or interval: how much lower the calibrated NLL is than that of the single network, on the same rows
        share        None, or interval: gain as a part of the deep ensemble's gain
        equivalents  None, or interval from 1 to M: how many independent networks have as low a calibrated NLL; with "most": M,
                     and "below", "above": whether it is in truth below 1 or above M
        diversity    {score: number}: disagreement, normalised_disagreement, pairwise_kl, error_correlation | bias, variance
        reliability  None, or {"confidence": [bins], "accuracy": [bins], "count": [bins]} (empty bins: null)
        interval_calibration  None or absent, or {"level": [levels of central intervals], "held": [shares of the targets]}
        residuals    None or absent, or {"predicted": […], "truth": […], "target": the target's name or None} of some rows
        risk_coverage  None, or {"coverage": […], "risk": […]}
        shift        None, or {"cacc", "cnll", "cece", "mce": number, "severities": {"accuracy" | "nll" | "ece": [six means, the
                     first on clean images]}, "kinds": {kind: accuracy over its severities, number}}
        ood          {name of the set: {"auroc" | "fpr95": {"confidence" | "entropy" | "mutual-information": number}}}
        attack       None, or {"title": "PGD, L∞, ε = 0.1", "success": […], "entropy": […] by iteration, "final": number, and
                     the same under "one_sample" for methods that draw, else None}
        unsure       [{"image": data URI or None, "truth", "answer", "confidence"}]: rows with the lowest confidence
        cost         {"parameters", "deployed_parameters", "flops", "deployed_flops", "training_flops", "memory": ratios to the
                     base network or None, "latency": interval, "passes": forward passes of the base network's size, "form"}
        seconds      number: duration of training
        runs         the folders of the runs
        training     None or absent, or {"score": "calibrated_nll" | "nll" | "pinball" | "rmse" of the validation rows,
                     "epochs": number, "curves": one for each seed, {"seed", "epochs": [at most 200], "scores": [as many],
                     "decay_from": the epochs after which the learning rate fell, or None, "still_improving": whether the score
                     was still improving then, or None if the schedule does not tell}}
    reference_curve  None, or {"method": the deep ensemble of M networks, "nll": [interval for 1 … M networks], "latency":
                     [that of 1 … M networks, × one network] or None}
    recommendation   [{"limit": "under 1.1 × the latency of one network", "method": name, or None for one
                     plain network, "text": the reasons}]
    notes            [caveats, one sentence each]
    tuning           absent, or the content of tuning.json: "trials" of each method, their "seed", the "score" that decides, and
                     "methods": [{"name", "spec" that was chosen, "chosen": number of the trial, "trials": [{"options",
                     "settings": what differs from the defaults, "state": "complete" | "pruned" | "failed", "score", "epochs",
                     "seconds", "reason"}], or "trained_as": the method whose settings it has}]

A *number* is {"mean", "std", "seeds": [one for each seed]} and, where an interval was computed, "low" and "high" of a 95 %
interval over seeds and rows. An *interval* is {"value", "low", "high"}. A score that does not exist for the data is absent.
"""

# The modules import plotly, jinja2 and matplotlib only when they are called, so that this import is cheap.
from .csv_and_markdown import format_csv, format_markdown
from .fragment import render_fragment
from .page import render_page
from .report_files import write_report
from .summary_figure import write_summary_figure

__all__ = ["format_csv", "format_markdown", "render_fragment", "render_page", "write_report", "write_summary_figure"]
