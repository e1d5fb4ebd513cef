"""Device locks: which devices a collection records, and the exclusive right to do so, across processes."""
