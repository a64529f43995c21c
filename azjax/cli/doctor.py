"""Finds what keeps a training run from learning: `azjax doctor`."""

import dataclasses

from azjax import diagnosis
from azjax.cli import console, custom


@dataclasses.dataclass(frozen=True)
class Options:
    """Looks for what keeps a run from learning, in its newest checkpoint; takes a minute or two."""

    typed: custom.OfPlayer = custom.PlayerOptions()


def run(options: Options) -> int:
    """Prints a line for each finding; returns 0 if all is well."""
    run_dir = custom.find_run(options.typed)
    with console.busy("examining…"):
        parts = custom.load_parts(run_dir, options.typed)
        findings = diagnosis.diagnose(run_dir, parts=parts)
    for finding in findings:
        mark = "NO" if finding.advice else "ok"
        print(f"{mark}  {finding.name}: {finding.sentence}")
        if finding.advice:
            print(f"    {finding.advice}")
    return int(any(finding.advice for finding in findings))


main = console.make_main(run, Options, "azjax doctor", "nothing was changed")
