# SPDX-License-Identifier: BSD-3-Clause
"""Tries etstream.executorch with other releases of ExecuTorch, beside the torch that is there.

Each gives what the release gives by itself, or names what the release does not have. tests/field/install-releases
puts the releases in build/peer-releases; ETSTREAM_EXECUTORCH_RELEASES names another folder that has them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RELEASES = Path(
    os.environ.get("ETSTREAM_EXECUTORCH_RELEASES", Path(__file__).resolve().parents[2] / "build" / "peer-releases")
)
WORKER = Path(__file__).with_name("release_worker.py")
NOT_LOADED = (
    r"ImportError: Bundle\.verify\(\) needs what executorch {} and torch .* do not have: "
    r"executorch\.extension\.pybindings\.portable_lib \(.*\)"
)
DIFFERS = {
    "1.3.1": {
        "install": r"ImportError: install\(\) needs what executorch 1\.3\.1 and torch .* do not have: "
        r"executorch\.devtools\.bundled_program\.serialize\._bundled_program_schema_to_flatbuffer",
        "etrecord": r"ImportError: install\(\) .*",
        # The runtime of this release was built for an earlier torch.
        "open_bundle": NOT_LOADED.format(r"1\.3\.1"),
    },
    "1.4.1": {},
    "1.5.0": {},
}


@pytest.mark.parametrize("version", DIFFERS)
def test_each_feature_works_or_names_what_the_release_lacks(version: str, tmp_path: Path) -> None:
    release = RELEASES / version
    assert release.is_dir(), f"{release} is not there: run tests/field/install-releases"
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(WORKER), str(release), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    differs = dict(DIFFERS[version])
    for feature, outcome in found.items():
        assert re.fullmatch(differs.get(feature, "same"), outcome, re.DOTALL), f"{feature}: {outcome}"
