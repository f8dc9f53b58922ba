"""Rules learnt from labelled rows: thresholds and axis-aligned rectangles."""
