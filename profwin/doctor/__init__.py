"""What works on this machine, and what will get in the way: looked at without recording or changing anything."""

from __future__ import annotations

from profwin.doctor.examination import Examination, examine
from profwin.doctor.host import Host

__all__ = ["Examination", "Host", "examine"]
