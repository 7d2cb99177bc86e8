"""One engine that runs independent jobs on joblib: in local processes, on a Dask cluster or on Ray.

jobs.py says what a job is, engine.py runs jobs until each is finished or has failed, workers.py starts the workers. The engine
knows neither training nor papers: `pluribus.runs` and `pluribus.papers` hand it their own calls. `pluribus.bench` does not use
it: its parts are timed one after another in one process, because work beside them would change the times.
"""

from .engine import describe_unfinished, run_jobs
from .jobs import Job, read_failure
from .workers import WorkerDied, WorkersError, check_workers

__all__ = ["Job", "WorkerDied", "WorkersError", "check_workers", "describe_unfinished", "read_failure", "run_jobs"]
