"""One account for all tests of the page; what a test wants otherwise, it replaces in a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report_sample import RECIPE, make_place
from toolkit.account import gather_account
from toolkit.page import Account


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Account:
    place = make_place(tmp_path_factory.mktemp("report"))
    return gather_account(place.generation, project=place.project, recipe=RECIPE)


@pytest.fixture
def generation(account: Account) -> Path:
    return account.overlay.root
