"""Keep pytest out of the sample projects: their tests are part of the projects and need a build of them."""

from __future__ import annotations

collect_ignore_glob = ["*"]
