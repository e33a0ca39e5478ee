import sys

from fairseq_capsule.cli import main

sys.exit(main())
