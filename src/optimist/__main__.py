"""`python -m optimist`."""

import sys

from optimist.cli.main import main

sys.exit(main())
