"""Layer 0: errors, cancellation, text positions, workspace paths. May import the standard library only."""
