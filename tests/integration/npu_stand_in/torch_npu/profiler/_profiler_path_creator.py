"""Imitates ``profiler/_profiler_path_creator.py``: the slot of the process for where the next recording goes."""

import os
import shutil
import socket
from datetime import datetime, timezone

from .analysis.prof_common_func._constant import Constant, Singleton, print_warn_msg


@Singleton
class ProfPathCreator:
    """The slot. Whoever fills it last decides, for whichever recording begins next."""

    def __init__(self):
        self._prof_path = None
        self._worker_name = None
        self._dir_path = None
        self._export_only_mode = False
        self.is_prof_inited = False

    def init(self, worker_name=None, dir_name=None, export_only_mode: bool = False) -> None:
        """Fill it."""
        self._export_only_mode = export_only_mode
        self._worker_name = worker_name
        if worker_name is not None and not 0 < len(worker_name) < Constant.MAX_WORKER_NAME_LENGTH:
            print_warn_msg("Invalid parameter worker_name, reset it to default.")
            self._worker_name = None
        dir_path = None if dir_name is None else os.path.realpath(os.path.expanduser(dir_name))
        if dir_path is not None and os.path.isfile(dir_path):
            raise RuntimeError(f"Invalid input path is a file path: {dir_path}")
        self._dir_path = dir_path

    def create_prof_dir(self):
        """Make the folder of a recording that begins."""
        worker_name = f"{self._worker_name or socket.gethostname()}_{os.getpid()}"
        current_time = datetime.now(tz=timezone.utc).astimezone()
        span_name = "{}_{}_ascend_pt".format(  # the contract reads this text
            worker_name, current_time.strftime("%Y%m%d%H%M%S%f")[:-3]
        )
        self._prof_path = os.path.join(self._dir_path or os.getcwd(), span_name)
        os.makedirs(self._prof_path, mode=0o750, exist_ok=True)
        self.is_prof_inited = True

    def get_prof_dir(self) -> str:
        """Return the folder of the last recording that began."""
        return self._prof_path

    def delete_prof_dir(self):
        """Remove it."""
        shutil.rmtree(self._prof_path, ignore_errors=True)
