"""Reports: their models and checks, the two keys, provenance and waivers."""
