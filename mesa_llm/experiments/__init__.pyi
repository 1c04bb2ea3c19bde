"""The public names, and the module that defines each."""

from .audits.audit import audit as audit
from .audits.audit import run_setup as run_setup
from .audits.claim import read_claims as read_claims
from .audits.recorded import recorded_audit as recorded_audit
from .audits.seal import seal_claims as seal_claims
from .benchmarks.benchmark import benchmark as benchmark
from .calibration.calibration import calibrate as calibrate
from .calibration.sensitivity import sensitivity as sensitivity
from .findings import Findings as Findings
from .findings import Table as Table
from .people.comparison import compare as compare
from .people.comparison import compare_with as compare_with
from .people.prediction_powered import prediction_powered_mean as prediction_powered_mean
from .people.survey import compare_survey as compare_survey
from .runs.arms import Arms as Arms
from .runs.branch import branch as branch
from .runs.power import Power as Power
from .runs.power import power as power
from .runs.recordings import recorded_run as recorded_run
from .runs.study import Study as Study
from .runs.study import StudyFindings as StudyFindings
from .runs.study import StudySetup as StudySetup
from .runs.study import study as study
from .runs.sweep import sweep as sweep
