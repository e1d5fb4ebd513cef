"""Benchmarks (`python -m benchmarks`) and the stress run (`python -m benchmarks.stress`) of profwin."""
