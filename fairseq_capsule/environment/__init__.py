"""What this environment has and lacks: `fairseq-capsule doctor`."""
