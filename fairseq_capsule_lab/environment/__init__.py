"""The checks of the environment, for `fairseq-capsule doctor`."""
