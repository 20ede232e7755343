"""From a view of an environment to findings, levels, and what cannot be decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stackfix.diagnose.abi import check_extensions
from stackfix.diagnose.damaged import find_unjudged, find_unusable_files
from stackfix.diagnose.families import find_two_families
from stackfix.diagnose.families_origin import find_mixed_origins
from stackfix.diagnose.finding_records import LEVELS, SEVERITIES, Diagnosis, Finding
from stackfix.diagnose.gpu import check_gpus
from stackfix.diagnose.imports_undecided import find_undecided_imports
from stackfix.diagnose.levels import describe_levels
from stackfix.diagnose.library_versions import find_library_versions
from stackfix.diagnose.links import find_broken_links
from stackfix.diagnose.links_python import find_lost_python
from stackfix.diagnose.links_unversioned import find_missing_names
from stackfix.diagnose.machine import check_machine
from stackfix.diagnose.missing import find_missing
from stackfix.diagnose.missing_foreign import find_foreign
from stackfix.diagnose.ownership import find_damaged_packages
from stackfix.diagnose.ownership_copies import find_two_installations, find_user_site_first
from stackfix.diagnose.ownership_shared import find_overwritten_files
from stackfix.diagnose.plumbing import find_broad_paths, find_current_folder, find_kernels_without_path
from stackfix.diagnose.plumbing_activation import find_activation_order
from stackfix.diagnose.requirements import find_requirement_faults
from stackfix.diagnose.shadows import find_shadows
from stackfix.diagnose.shadows_harmless import find_harmless_shadows
from stackfix.diagnose.situation import View
from stackfix.inspect.machine_records import Undecided

Answer = Finding | Undecided
CHECKS: tuple[Callable[[View], Iterable[Answer]], ...] = (
    find_two_families,
    find_mixed_origins,
    find_overwritten_files,
    find_damaged_packages,
    find_unusable_files,
    find_unjudged,
    find_two_installations,
    find_user_site_first,
    find_broken_links,
    find_lost_python,
    find_missing_names,
    find_activation_order,
    find_broad_paths,
    find_current_folder,
    find_kernels_without_path,
    check_machine,
    check_gpus,
    check_extensions,
    find_shadows,
    find_harmless_shadows,
    find_library_versions,
    find_missing,
    find_foreign,
    find_requirement_faults,
    find_undecided_imports,
)


def diagnose(view: View) -> Diagnosis:
    """All that is wrong or worth knowing, worst first; what cannot be decided here stands apart."""
    answers = list(dict.fromkeys(answer for check in CHECKS for answer in check(view)))
    findings = sorted((each for each in answers if isinstance(each, Finding)), key=rank)
    undecided = (*view.machine.undecided, *(each for each in answers if isinstance(each, Undecided)))
    return Diagnosis(levels=tuple(describe_levels(view, findings)), findings=tuple(findings),
                     undecided=tuple(sorted(dict.fromkeys(undecided), key=is_of_machine)))


def is_of_machine(question: Undecided) -> bool:
    """Whether a question is none of the environment's own files: on a machine without a GPU there are many."""
    return "/" not in question.subject and question.subject != "imports" and not question.subject.startswith("files of")


def rank(finding: Finding) -> tuple[int, int, str, str, str]:
    """Worst first, then from the base of the pyramid upwards: what lies below is often the cause."""
    culprit = finding.culprit
    return (SEVERITIES.index(finding.severity), LEVELS.index(finding.level), finding.code,
            culprit.path or culprit.package or culprit.variable or "", finding.summary)
