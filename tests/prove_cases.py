"""A verify folder with checks of our own, spoken to by the real protocol; a site with a fault, one without."""

import json
import shutil
from pathlib import Path

REAL_VERIFY = Path(__file__).parents[1] / "verify"

WITNESS = """
import subject
from verify.contract import failed, passed
def check(request):
    return failed("the fault is there") if subject.FAULT else passed("the fault is gone")
"""


class FakeVerify:
    """A verify folder that holds the real entry point and contract, and the checks that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, dict[str, object]] = {}
        (folder / "checks").mkdir(parents=True)
        for name in ("__init__.py", "__main__.py", "contract.py", "checks/__init__.py"):
            shutil.copy(REAL_VERIFY / name, folder / name)

    def add(self, name: str, source: str, **entry: object) -> str:
        """Write a check's module and its entry in the catalogue."""
        module = name.replace("-", "_")
        (self.folder / "checks" / f"{module}.py").write_text(source)
        usual = {"summary": name, "sides": ["overlay"], "env": {}, "static": False}
        self.entries[name] = {"module": f"verify.checks.{module}", **usual, **entry}
        (self.folder / "checks.json").write_text(json.dumps(self.entries))
        return name

    def add_witness(self, name: str = "subject-fault", source: str = WITNESS) -> str:
        """Write a witness, which runs on both sides."""
        return self.add(name, source, sides=["base", "overlay"], witness=True)


def make_site(site: Path, *, fault: bool) -> Path:
    site.mkdir(parents=True)
    (site / "subject.py").write_text(f"FAULT = {fault}\n")
    return site
