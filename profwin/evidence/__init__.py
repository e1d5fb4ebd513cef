"""Evidence: what the files of a run prove. Reads files, starts nothing, and needs no profiler and no torch.

``formats`` reads what profilers and profwin write; ``check`` judges it, ``timeline`` puts it on one time axis,
``report`` says where the time went.
"""
