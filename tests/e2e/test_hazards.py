"""Programs that lean on the wait which a pageable copy makes: right without the library, and so under it.

Each script is also run under programs/careless.c, which stages and pays no wait back: there it must go wrong.
"""

import pathlib

import pytest

import harness
from on_gpusim import run

PROGRAMS = pathlib.Path(__file__).parent / "programs"

# Every script runs in each of these: name -> (policy, further environment). None: without the library.
ENVIRONMENTS = {
    "plain": (None, {}),
    "safe": ("safe", {"GPUBOOST_ELIDE": "off"}),
    "elided": ("safe", {"GPUBOOST_ELIDE": "on"}),
    "single_hop": ("safe", {"GPUBOOST_ELIDE": "on", "GPUBOOST_STAGING": "0"}),
    "waited": ("safe", {"GPUBOOST_EARLY": "off", "GPUBOOST_ELIDE": "off"}),
}
OWING = ["elided", "single_hop"]
SCRIPTS = ["elapsed_time", "event_query", "side_stream", "pinned_read", "pinned_read_sync", "external_reader",
           "other_process"]
EXPORTING = ["external_reader", "other_process"]  # copies into memory that others see are left to the driver
SEEDS = [(1, 20)]  # first and how many; every five have each temper of the virtual clock once
LEAST_STAGED = 20  # of 52 rounds, 12 of them before the first seed
LEAST_OWED = 10  # of those; where something that the host sees is outstanding, a copy waits
NEVER_OWED = ["pinned_read", "pinned_read_sync"]
HANG_SECONDS = 10
SMALL = 64 << 10  # the driver takes up to this along at the call

environments = pytest.mark.parametrize("environment", ENVIRONMENTS)


def run_in(environment, folder, script, *arguments, **settings):
    policy, more = ENVIRONMENTS[environment]
    return run(folder, policy, PROGRAMS / f"hazard_{script}.py", *arguments, **more, **settings)


@pytest.mark.parametrize("first, count", SEEDS)
@environments
@pytest.mark.parametrize("script", SCRIPTS)
def test_no_round_goes_wrong(tmp_path, script, environment, first, count):
    result = run_in(environment, tmp_path, script, first, count, GPUSIM_CLOCK="virtual")
    assert result.stdout.strip() == "0"
    if not ENVIRONMENTS[environment][0]:
        return
    counts = result.snapshot["counts"]
    if script in EXPORTING:
        assert counts["h2d.declined.exported_memory"] >= LEAST_STAGED, counts
        return
    assert result.totals["staged_copies"] >= LEAST_STAGED, counts
    if environment in OWING and script not in NEVER_OWED:
        assert counts["debts.opened"] >= LEAST_OWED, counts


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_catches_a_careless_library(tmp_path, script, built):
    library = built("careless", library=True)
    result = run(tmp_path, None, PROGRAMS / f"hazard_{script}.py", 1, 10, LD_PRELOAD=library,
                 GPUSIM_CLOCK="virtual")
    assert int(result.stdout) > 5


@pytest.mark.parametrize("kind, clock", [("function", "real"), ("value", "virtual")])
@pytest.mark.parametrize("copies, largest, queue", [(60, SMALL, 1024), (400, 1, 1024), (400, SMALL, 1024),
                                                    (2000, SMALL, 8192)])
@environments
def test_copies_into_a_held_stream(tmp_path, environment, copies, largest, queue, kind, clock):
    """The virtual clock calls a host function only when something waits for it. A stream's queue of 1,024 has room for
    two operations of each of 400 copies."""
    result = run_in(environment, tmp_path, "held_stream", kind, copies, largest, HANG_SECONDS, GPUSIM_CLOCK=clock,
                    GPUSIM_QUEUE=queue)
    assert result.stdout.strip() == "0"


@pytest.mark.parametrize("kind, clock", [("function", "real"), ("value", "virtual")])
def test_the_held_stream_catches_a_careless_library(tmp_path, built, kind, clock):
    with pytest.raises(AssertionError, match="Timeout"):
        run(tmp_path, None, PROGRAMS / "hazard_held_stream.py", kind, 60, SMALL, 3,
            LD_PRELOAD=built("careless", library=True), GPUSIM_CLOCK=clock)


@pytest.mark.parametrize("boost, more", [(False, {}), (True, {"GPUBOOST_ELIDE": "wide"}), (True, {"GPUBOOST_EARLY": "off"})])
def test_captures_beside_copies(built, out, boost, more):
    """A query or a wait of ours would break the global capture of another thread."""
    program = built("captures", str(harness.SIM / "libcudart.so.12"), "-Wl,--allow-shlib-undefined")
    result = harness.run([program, 1500], out, boost=boost, driver="sim", **more)
    assert result.stdout == "0 captures failed, 0 copies wrong\n"
    if boost:
        assert result.totals["staged_copies"] > 10, result.counts


def test_expandable_segments_are_served(tmp_path):
    """Their destinations are mapped memory, which a rule of thumb would leave out."""
    result = run(tmp_path, "safe", PROGRAMS / "hazard_side_stream.py", 1, 20, GPUSIM_CLOCK="virtual", GPUBOOST_ELIDE="on",
                 PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    counts = result.snapshot["counts"]
    assert result.stdout.strip() == "0"
    assert result.totals["staged_copies"] >= LEAST_STAGED and counts["debts.opened"] >= LEAST_OWED, counts
