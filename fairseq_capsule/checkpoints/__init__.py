"""What a checkpoint may hold: rules that are applied before fairseq reads any of it."""
