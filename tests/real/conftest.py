"""Let pytest show the values in the judge's assertions; holds no fixture."""

import pytest

pytest.register_assert_rewrite("tests.real.judge")
