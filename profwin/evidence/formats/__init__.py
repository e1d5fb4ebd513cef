"""Readers of what profilers and profwin write. Each reads in fixed memory and never trusts what it reads."""
