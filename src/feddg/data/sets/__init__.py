"""What is known of the papers' data sets: a module each, with its `SPEC`."""
