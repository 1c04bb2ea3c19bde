"""Audits: whether claims about a model are stable under what should not matter.

- `audit`: the runs; `setup`: what is run; `looks`: after how many seeds it is judged; `judged`: what goes on then.
- `claim`: what is claimed; `dimensions`: what is perturbed; `wording`: rewordings that a language model writes.
- `verdict`: statistics; `probes`: what agents know of the experiment, and how many decisions change.
- `interactions`: changes that are made together; `multiverse`: what was found of them.
- `seal`: proof that the claims were written before the runs were made.
- `findings`: verdicts, tables, a page.
- `recorded`: audits that come with a model.
"""

from mesa_llm.experiments.audits.audit import audit, audit_setup, estimate_audit, run_setup
from mesa_llm.experiments.audits.claim import AuditClaim, claim_from, level_of, read_claims
from mesa_llm.experiments.audits.dimensions import DIMENSIONS, Perturbation, plan_for
from mesa_llm.experiments.audits.findings import Audit
from mesa_llm.experiments.audits.recorded import declared_audit, record_audit, recorded_audit
from mesa_llm.experiments.audits.seal import check_seal, seal_claims
from mesa_llm.experiments.audits.setup import AuditSetup, n_runs
from mesa_llm.experiments.audits.wording import write_rewordings

__all__ = [
    "DIMENSIONS",
    "Audit",
    "AuditClaim",
    "AuditSetup",
    "Perturbation",
    "audit",
    "audit_setup",
    "check_seal",
    "claim_from",
    "declared_audit",
    "estimate_audit",
    "level_of",
    "n_runs",
    "plan_for",
    "read_claims",
    "record_audit",
    "recorded_audit",
    "run_setup",
    "seal_claims",
    "write_rewordings",
]
