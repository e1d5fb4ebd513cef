"""Collecting: the files of all nodes into one folder, in pieces, so that it can be broken off and gone on with."""
