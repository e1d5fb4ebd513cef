"""Imitates ``profiler/experimental_config.py``: wrong values are reset with a message, and what it says of itself."""

from .analysis.prof_common_func._constant import Constant, print_warn_msg


class ProfilerLevel:
    """Levels."""

    Level0 = Constant.LEVEL0
    Level1 = Constant.LEVEL1
    Level2 = Constant.LEVEL2
    Level_none = Constant.LEVEL_NONE


class AiCMetrics:
    """What is measured of the cores, of one kind at a time."""

    PipeUtilization = Constant.AicPipeUtilization
    ArithmeticUtilization = Constant.AicArithmeticUtilization
    Memory = Constant.AicMemory
    MemoryL0 = Constant.AicMemoryL0
    MemoryUB = Constant.AicMemoryUB
    ResourceConflictRatio = Constant.AicResourceConflictRatio
    L2Cache = Constant.AicL2Cache
    MemoryAccess = Constant.AicMemoryAccess
    AiCoreNone = Constant.AicMetricsNone


class ExportType:
    """Forms of the results."""

    Db = Constant.Db
    Text = Constant.Text


class HostSystem:
    """What is sampled of the host."""

    CPU = Constant.CPU
    MEM = Constant.MEM
    DISK = Constant.DISK
    NETWORK = Constant.NETWORK
    OSRT = Constant.OSRT
    NUMA = Constant.NUMA


class _ExperimentalConfig:
    def __init__(
        self,
        profiler_level: int = Constant.LEVEL0,
        aic_metrics: int = Constant.AicPipeUtilization,
        l2_cache: bool = False,
        msprof_tx: bool = False,
        mstx: bool = False,
        data_simplification: bool = True,
        record_op_args: bool = False,
        op_attr: bool = False,
        gc_detect_threshold: float | None = None,
        export_type: str | list = ExportType.Text,
        host_sys: list | None = None,
        mstx_domain_include: list | None = None,
        mstx_domain_exclude: list | None = None,
        sys_io: bool = False,
        sys_interconnection: bool = False,
    ):
        self._profiler_level, self._aic_metrics = profiler_level, aic_metrics
        self._l2_cache, self._msprof_tx, self._mstx = l2_cache, msprof_tx, mstx
        self._data_simplification, self.record_op_args, self._op_attr = data_simplification, record_op_args, op_attr
        self._gc_detect_threshold = gc_detect_threshold
        self._export_type = [export_type] if isinstance(export_type, str) else list(set(export_type))
        self._host_sys = host_sys or []
        self._mstx_domain_include, self._mstx_domain_exclude = mstx_domain_include or [], mstx_domain_exclude or []
        self._sys_io, self._sys_interconnection = sys_io, sys_interconnection
        low = (Constant.LEVEL0, Constant.LEVEL_NONE)
        if profiler_level in low and aic_metrics != Constant.AicMetricsNone:
            print_warn_msg("Please use level1 or level2 if you want to collect aic metrics, reset aic metrics to None!")
            self._aic_metrics = Constant.AicMetricsNone
        if self._op_attr and ExportType.Db not in self._export_type:
            print_warn_msg("op_attr switch is invalid with export type set as text.")
            self._op_attr = False
        if self._mstx_domain_include and self._mstx_domain_exclude:
            print_warn_msg("Parameter mstx_domain_include and mstx_domain_exclude can not be both set")
            self._mstx_domain_exclude = []
