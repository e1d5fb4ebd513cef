"""Codes of findings about a run as a whole: its journals, what is in it, and whether it is unmixed."""

from __future__ import annotations

from profwin.evidence.finding import Code

# Journals and manifest.
TORN_JOURNAL = Code(
    "torn-journal", "error", "A line of a journal is no JSON, so a record is lost.",
    "Look at the disk and at what else writes to the file; the evidence of that process is incomplete.",
)  # fmt: skip
FOREIGN_RECORD = Code(
    "foreign-record", "error", "A line of a journal is no record of profwin, or lacks what a record must have.",
    "Find out what else writes to the journal; profwin alone may.",
)  # fmt: skip
CONTRADICTING_JOURNAL = Code(
    "contradicting-journal", "error", "Records of one journal contradict each other, such as an end before its begin.",
    "Do not join or edit journals; if nobody did, report it as a bug of profwin.",
)  # fmt: skip
NEWER_JOURNAL = Code(
    "newer-journal", "remark", "A journal has kinds, fields or a schema that this version does not know.",
    "Check it with the version of profwin that wrote it, or a newer one.",
)  # fmt: skip
CUT_JOURNAL = Code(
    "cut-journal", "remark", "The last line of a journal has no end: the process was killed while it wrote it.",
    "Nothing, if the process was killed on purpose; one record at most is lost.",
)  # fmt: skip
UNREADABLE_JOURNAL = Code(
    "unreadable-journal", "error", "A journal cannot be read, or does not begin with the process that wrote it.",
    "Make it readable, or copy the run again.",
)  # fmt: skip
EMPTY_JOURNAL = Code(
    "empty-journal", "warning", "A journal is empty: the process was killed before its first record.",
    "Look at that process's log.",
)  # fmt: skip
LARGE_JOURNAL = Code(
    "large-journal", "warning", "The journals hold more than is read in bounded memory; the rest was left out.",
    "Check fewer steps or attempts at a time: one run's directory each.",
)  # fmt: skip
NO_JOURNALS = Code(
    "no-journals", "error", "A run's directory has no journals.",
    "Copy the run's journal/ folder beside its traces; without it, order on the devices cannot be proved.",
)  # fmt: skip
JOURNAL_MISSING = Code(
    "journal-missing", "error", "The manifest names a journal that is not there.",
    "Copy the run again, with its whole journal/ folder.",
)  # fmt: skip
BAD_MANIFEST = Code(
    "bad-manifest", "warning", "The manifest cannot be read or is damaged; the journals have it all.",
    "Copy it again, or remove it.",
)  # fmt: skip
MIXED_RUNS = Code(
    "mixed-runs", "warning", "Journals of different runs lie in one directory.",
    "Give each run a directory of its own.",
)  # fmt: skip
DROPPED_RECORDS = Code(
    "dropped-records", "error", "A process could not write some of its records.",
    "Look at that process's log, and at the room on the disk.",
)  # fmt: skip

NOTED = Code(
    "noted", "warning", "A process of the run noted something in its journal that has no code of its own here.",
    "See the table of findings in the journal's reference.",
)  # fmt: skip
BAD_SETTING = Code(
    "bad-setting", "remark", "A selection in a journal cannot be read, so what was asked for is known only in part.",
    "Say it with --steps, --stages, --ranks or --roles.",
)  # fmt: skip

# Presence.
NOTHING_RECORDED = Code(
    "nothing-recorded", "error", "The run recorded nothing at all.",
    "Check the selection of steps, ranks and roles, and that the loop reached the selected steps.",
)  # fmt: skip
MISSING_ROLE = Code(
    "missing-role", "error", "A role that was asked for recorded nothing.",
    "Check that its processes have the run's variables, and that its code is decorated.",
)  # fmt: skip
MISSING_RANK = Code(
    "missing-rank", "error", "A rank recorded nothing, or not what the other ranks of its role did.",
    "Check that the process had the run's variables and did not end early; or select ranks on purpose.",
)  # fmt: skip
MISSING_STEP = Code(
    "missing-step", "error", "The loop passed a step that was asked for, and nothing of it is there.",
    "Check that its windows and stages are decorated, and that their processes had the run's variables.",
)  # fmt: skip
STEP_NOT_REACHED = Code(
    "step-not-reached", "warning", "The run ended, or began, on the other side of a step that was asked for.",
    "Run further, or ask for steps that are reached.",
)  # fmt: skip
MISSING_STAGE = Code(
    "missing-stage", "error", "A stage or window that was asked for by name is missing in a step.",
    "Check its name, that it ran in that step, and that its process had the run's variables.",
)  # fmt: skip
UNEVEN_STAGE = Code(
    "uneven-stage", "warning", "A stage that other recorded steps have is missing in a step.",
    "If it runs in each step, see why it did not in this one.",
)  # fmt: skip
MISSING_WINDOW = Code(
    "missing-window", "warning", "A step has stages and no rollout window, although other steps have windows.",
    "Check that generation of that step runs inside a rollout_window.",
)  # fmt: skip
MISSING_OCCURRENCE = Code(
    "missing-occurrence", "error", "Of the windows or stages of one name in a step, one between the others is missing.",
    "Look for the journal or the record that is lost.",
)  # fmt: skip
FEWER_OCCURRENCES = Code(
    "fewer-occurrences", "warning", "A rank has fewer windows or stages of one name in a step than other ranks.",
    "If all ranks do the same work, see why this one did not.",
)  # fmt: skip
DOUBLED = Code(
    "doubled", "error", "The same window or stage is there twice, of one rank, device and attempt.",
    "Give each process a rank and role of its own, and each launch a run of its own.",
)  # fmt: skip
UNEXPECTED_STAGE = Code(
    "unexpected-stage", "warning", "A stage was recorded that was not asked for.",
    "Check which process had other settings.",
)  # fmt: skip
NO_STAGES = Code(
    "no-stages", "warning", "Nothing is decorated: the run has rollout windows and no training stage.",
    "Decorate the training code with @training_stage; check that its processes have the run's variables.",
)  # fmt: skip
NO_WINDOWS = Code(
    "no-windows", "warning", "No rollout window precedes any stage: the run has training stages and no window.",
    "Put generation into a rollout_window, if the run generates.",
)  # fmt: skip
WINDOW_WITHOUT_STAGES = Code(
    "window-without-stages", "warning",
    "Nothing is decorated on this device: it has rollout windows and no stage, although its siblings have stages.",
    "Decorate the training code that uses the device with @training_stage.",
)  # fmt: skip
STAGE_WITHOUT_WINDOW = Code(
    "stage-without-window", "warning", "No rollout window precedes the stages of a step on their device.",
    "Put the step's generation on that device into a rollout_window, before its stages.",
)  # fmt: skip
SKIPPED_BUSY = Code(
    "skipped-busy", "error", "A window or stage ran unrecorded: another process held its device, and did not let go.",
    "See who held it: end its window before, raise wait_budget, or record less there.",
)  # fmt: skip
SKIPPED_PEER = Code(
    "skipped-peer", "warning", "Something ran unrecorded because another process trained on its device.",
    "Give each training process a device of its own, or select one rank for each device.",
)  # fmt: skip
SKIPPED_UNKNOWN = Code(
    "skipped-unknown", "error", "A window or stage ran unrecorded: an engine may still have recorded on its device.",
    "See why that engine did not confirm its stop; `profwin locks --confirm` frees the device.",
)  # fmt: skip
SKIPPED_FOREIGN = Code(
    "skipped-foreign", "error", "A window or stage ran unrecorded: a profiler that is not profwin's was on.",
    "Switch that profiler off, or do not select its steps.",
)  # fmt: skip
SKIPPED_THREAD = Code(
    "skipped-thread", "error", "A window or stage ran unrecorded: what was open was bound to another thread.",
    "Open and close windows in the thread that trains.",
)  # fmt: skip
SKIPPED_FAILED = Code(
    "skipped-failed", "error", "A window or stage ran unrecorded: the registry, a profiler or an engine failed.",
    "See the error.",
)  # fmt: skip
SKIPPED_PAUSED = Code(
    "skipped-paused", "remark", "A window or stage ran unrecorded inside paused(), or after profwin was shut down.",
    "Nothing, if that was meant.",
)  # fmt: skip
CLOSED_EARLY = Code(
    "closed-early", "warning", "A recording ended before its window or stage did, so it is not whole.",
    "See the reason.",
)  # fmt: skip
CUT_SHORT = Code(
    "cut-short", "remark", "A recording was ended by max_seconds before its window or stage was over.",
    "Nothing, if that was meant; else raise max_seconds.",
)  # fmt: skip
PROFILER_FAILED = Code(
    "profiler-failed", "error", "A profiler or an engine failed while it recorded or stopped.",
    "See the error; the recording is lost or not whole.",
)  # fmt: skip
UNRECORDED = Code(
    "unrecorded", "error", "A window or stage has neither a recording nor a reason why.",
    "Look for lost records of that process.",
)  # fmt: skip
UNEXPECTED_STEP = Code(
    "unexpected-step", "warning", "A step was recorded that was not asked for.",
    "Check which process had other settings.",
)  # fmt: skip
UNEXPECTED_RANK = Code(
    "unexpected-rank", "warning", "A rank or role was recorded that was not asked for.",
    "Check which process had other settings.",
)  # fmt: skip
CONTINUED = Code(
    "continued", "remark", "A recording was interrupted and continued in another one.",
    "Nothing: read the segments together.",
)  # fmt: skip
FAILED_BODY = Code(
    "failed-body", "warning", "The code inside a window or stage raised, so its recording ends there.",
    "See the loop's own error.",
)  # fmt: skip
TRACE_MISSING = Code(
    "trace-missing", "error", "A journal says that this trace is complete, and the file is not there.",
    "Copy the run's whole directory; if it was complete when the run ended, something deleted the file since.",
)  # fmt: skip
TRACE_SIZE = Code(
    "trace-size", "error", "The file has another size than the journal says it had when it was complete.",
    "Something changed the file after it was written: copy it again.",
)  # fmt: skip
TRACE_ELSEWHERE = Code(
    "trace-elsewhere", "remark", "A trace lies outside the run's directory, so it was not looked at.",
    "Check that place too.",
)  # fmt: skip
EXPORT_FAILED = Code(
    "export-failed", "error", "A profiler recorded, and its trace could not be written.",
    "See the error; often the disk is full.",
)  # fmt: skip
NOT_EXPORTED = Code(
    "not-exported", "error", "A recording was closed, and its journal names neither a trace nor an error.",
    "Look at the log of that process: it ended, or was killed, between recording and writing.",
)  # fmt: skip

# Unmixed.
OVERLAP = Code(
    "overlap", "error", "Rollout and training were recorded on one device at the same time.",
    "Let all processes use one lock directory of the host; see `profwin locks`.",
)  # fmt: skip
SHARED_DEVICE = Code(
    "shared-device", "error", "Two recordings of one device, both of rollout or both of training, went on at once.",
    "Of two processes: let all use one lock directory of the host, see `profwin locks`. Of one: report it as a bug.",
)  # fmt: skip
HANDOVER_ORDER = Code(
    "handover-order", "error", "Stages began on a device while a rollout window there was still being recorded.",
    "End the window's block before its driver calls or awaits the stage; it waits for itself otherwise.",
)  # fmt: skip
UNCONFIRMED_HANDOVER = Code(
    "unconfirmed-handover", "error", "Training was recorded on a device before the engine's stop there was confirmed.",
    "Let all processes use one lock directory of the host; see `profwin locks`.",
)  # fmt: skip
WINDOW_CLOSED_EARLY = Code(
    "window-closed-early", "warning", "A rollout window was closed before its end because something needed its device.",
    "End the window before the stage begins: the places in the code are named.",
)  # fmt: skip
STALE_WINDOW = Code(
    "stale-window", "error", "A rollout window was never ended by its own code: the window of a later step closed it.",
    "Call close() or stop the engine when generation is over; until then no stage of the device is recorded.",
)  # fmt: skip
GAVE_WAY = Code(
    "gave-way", "warning", "A recording was ended because another process asked for its device.",
    "See who asked; give it a device of its own, or end the window before.",
)  # fmt: skip
LATE_STOP = Code(
    "late-stop", "error", "An engine did not confirm its stop in time; its devices stayed locked until it did.",
    "See the engine's log; record less (max_seconds, fewer steps), or raise wait_budget.",
)  # fmt: skip
ENGINE_DIED = Code(
    "engine-died", "error", "An engine died while it recorded.",
    "See the engine's own log; its trace is lost.",
)  # fmt: skip
NO_STOP = Code(
    "no-stop", "error", "An engine was told to record, and its stop was never confirmed: it may still record.",
    "See the engine's log; `profwin locks --confirm` frees the device once it has stopped.",
)  # fmt: skip
DIED_RECORDING = Code(
    "died-recording", "error", "A process ended while it recorded: the recording was never closed.",
    "Look at that process's log; its last trace is lost.",
)  # fmt: skip
NEVER_CLOSED = Code(
    "never-closed", "error", "A process ended in order, and one of its recordings was never closed.",
    "Report it as a bug of profwin, with the journal.",
)  # fmt: skip
NO_END = Code(
    "no-end", "remark", "A journal has no last record: the process was killed, or is still running.",
    "Nothing, if that was meant.",
)  # fmt: skip
LOST_LOCK = Code(
    "lost-lock", "error", "A lock file was removed or replaced while it was held, so exclusion is not proved.",
    "Let nothing clean the lock directory while runs are at work.",
)  # fmt: skip
SLOW_STOP = Code(
    "slow-stop", "warning", "Stop and export took over a quarter of the process group's timeout; other ranks wait.",
    "Record less in one window or stage, or raise the timeout; where journals lack it, say it with --group-timeout.",
)  # fmt: skip
CANNOT_TELL = Code(
    "cannot-tell", "warning", "Whether rollout and training overlapped cannot be told from these traces.",
    "Record with profwin, whose journals tell; else see what is lacking, or let it pass with --fail-on error.",
)  # fmt: skip
PURPOSE_UNKNOWN = Code(
    "purpose-unknown", "remark", "Whether traces are of rollout or of training is not known, so neither is an overlap.",
    "Record with profwin, or keep rollout and training in folders whose names say it.",
)  # fmt: skip
