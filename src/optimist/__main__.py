"""`python -m optimist`."""

import sys

from optimist.cli import main

sys.exit(main())
