"""Flatten a launch into the facts that rules compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolkit.launch.values import Launch

OPTIONS: Mapping[str, str] = {
    "dtype": "training.dtype",
    "attention_backend": "model.attention_backend",
    "steps": "training.steps",
    "seed": "debug.seed",
    "dump_folder": "dump_folder",
    "global_batch_size": "training.global_batch_size",
    "local_batch_size": "training.local_batch_size",
    "seq_len": "training.seq_len",
    "compile_backend": "compile.backend",
    "load_path": "checkpoint.initial_load_path",
    "dataset_path": "dataloader.dataset_path",
    "shard_degree": "parallelism.data_parallel_shard_degree",
    "expert_degree": "parallelism.expert_parallel_degree",
}
"""Facts that are an option's value."""

VARIABLES: Mapping[str, str] = {
    "backend": "TORCHINDUCTOR_NPU_BACKEND",
    "extensions_dir": "TORCH_EXTENSIONS_DIR",
    "cache_dir": "TORCHINDUCTOR_CACHE_DIR",
    "pythonpath": "PYTHONPATH",
    "autoload": "TORCH_DEVICE_BACKEND_AUTOLOAD",
    "visible_devices": "ASCEND_RT_VISIBLE_DEVICES",
    "overlay": "TOOLKIT_OVERLAY",
    "cann": "ASCEND_HOME_PATH",
    "max_jobs": "MAX_JOBS",
    "launch_blocking": "ASCEND_LAUNCH_BLOCKING",
}
"""Facts that are a variable's value."""

STRICT, WARN_ONLY = "debug.deterministic", "debug.deterministic_warn_only"
ALLOCATOR = ("PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def launch_facts(launch: Launch) -> Mapping[str, str]:
    """Return what is known of a launch, by the names that rules use; a fact that nobody knows is absent.

    Of the command (all absent where no command was given): `compile` and `checkpoint` are "true" or "false";
    `deterministic` is "true", "false" or "warn_only"; `dtype`, `attention_backend`, `steps`, `seed`, `dump_folder`,
    `global_batch_size`, `local_batch_size`, `seq_len`, `compile_backend`, `load_path`, `dataset_path`, `shard_degree`,
    `expert_degree` are the options' values, "" where they are not given and the configuration decides; `program`,
    `target`, `module`, `config` are what is started; `ngpu` is the number of processes.
    What is written counts, although arguments that nobody sees (`"$@"`) might replace it; what is not written is absent
    then.
    A configuration file (`--job.config_file`) says what the command does not; where it was not read, that is absent.
    Of the environment: `backend` (TORCHINDUCTOR_NPU_BACKEND), `extensions_dir` (TORCH_EXTENSIONS_DIR), `cache_dir`
    (TORCHINDUCTOR_CACHE_DIR), `pythonpath`, `autoload` (TORCH_DEVICE_BACKEND_AUTOLOAD), `visible_devices`
    (ASCEND_RT_VISIBLE_DEVICES), `alloc_conf` (PYTORCH_NPU_ALLOC_CONF, else PYTORCH_ALLOC_CONF), `overlay`
    (TOOLKIT_OVERLAY), `cann` (ASCEND_HOME_PATH), `max_jobs`, `launch_blocking` are the values, "" where they are known
    to be unset.
    """
    return dict(_environment_facts(launch)) | (dict(_command_facts(launch)) if launch.argv else {})


def process_count(launch: Launch) -> str | None:
    """Return how many processes a node gets: what torchrun is told, else the run script's or the caller's NGPU."""
    if "nproc_per_node" in launch.launcher:
        return launch.launcher["nproc_per_node"].value
    if "NGPU" in launch.script:
        return launch.script["NGPU"]
    return launch.environ.get("NGPU")


def _environment_facts(launch: Launch) -> Iterator[tuple[str, str]]:
    for fact, name in VARIABLES.items():
        value = launch.variable(name)
        if value is not None:
            yield fact, value
    said = [launch.variable(name) for name in ALLOCATOR]
    decided = next((value for value in said if value != ""), "")
    if decided is not None:
        yield "alloc_conf", decided


def _command_facts(launch: Launch) -> Iterator[tuple[str, str]]:
    for fact, name in OPTIONS.items():
        value = launch.option(name)
        if value is not None:
            yield fact, value
    for fact, name in (("compile", "compile.enable"), ("checkpoint", "checkpoint.enable")):
        value = launch.option(name)
        if value is not None:
            yield fact, value or "false"
    deterministic = _determinism(launch)
    if deterministic is not None:
        yield "deterministic", deterministic
    for fact, name in (("module", "MODULE"), ("config", "CONFIG")):
        value = launch.option(fact) or launch.script.get(name) or launch.environ.get(name)
        if value:
            yield fact, value
    if count := process_count(launch):
        yield "ngpu", count
    yield from (("program", launch.program), ("target", launch.target))


def _determinism(launch: Launch) -> str | None:
    """Return which determinism was asked for; a strict one that is written counts, whatever may be beside it."""
    warns, strict = launch.option(WARN_ONLY), launch.option(STRICT)
    if warns is None and strict and WARN_ONLY not in launch.options:
        return strict
    if warns == "true":
        return "warn_only"
    return None if warns is None or strict is None else "true" if strict == "true" else "false"
