"""What holds for every test: processes that a test starts keep their bytecode; holds no fixture."""

import os

# Where the environment forbids it, each of the many starts of the tool would compile all of it again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
