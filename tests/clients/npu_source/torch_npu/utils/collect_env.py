"""Versions, which torch_npu asks of its library and of CANN."""


def get_cann_version():
    """Return CANN's version."""
    return "9.1.0"


def get_torch_npu_version():
    """Return torch_npu's version."""
    return "2.14.0"
