"""gpuboost prove on the simulated GPU: that it proves, that each broken assumption is noticed, what it leaves behind."""

import json
import os
import stat
import subprocess
import sys
import textwrap

import pytest

from command_line import COMMAND, GPUSIM, ROOT, environment, gpuboost, training

sys.path.insert(0, str(ROOT / "scripts"))

from gpuboost import prove  # noqa: E402

NAME = "12080-SIMULATED_GPU_0__gpusim_"
LARGE, SMALL = "a pageable copy of more than 64 KiB", "one of up to 64 KiB"
UNFINISHED, BEHIND = "an event of work that is not done", "an event behind a copy"
ORDER, ORDER_DEVICES = "cuStreamWaitEvent orders another stream of the device", "and a stream of another device"
AGAIN, MAPPED, THROUGH = "to record an event again", "memory of cuMemCreate", "a copy through device memory"
CAPTURE, COHERENT = "events can be recorded", "pageable memory is not the GPU's own"
ALL = [LARGE, SMALL, UNFINISHED, BEHIND, ORDER, ORDER_DEVICES, AGAIN, MAPPED, THROUGH, CAPTURE, COHERENT]


def prove_simulated(state, **settings):
    settings = {"GPUSIM_DEVICES": "1", **settings}
    return subprocess.run([GPUSIM, COMMAND, "prove"], env=environment(XDG_STATE_HOME=str(state), **settings),
                          capture_output=True, text=True, timeout=120)


def having(status, text):
    """The probes of a status, by the beginning of what they say."""
    words = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    return [name for name in ALL if any(line.startswith(status) and line[len(status):].strip().startswith(name)
                                        for line in words)]


def test_the_simulated_gpus_are_proven(tmp_path):
    done = prove_simulated(tmp_path, GPUSIM_DEVICES="2")
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    assert done.stdout.startswith("gpuboost prove: SIMULATED GPU 0 (gpusim) (device 0), driver 12.8\n")
    assert len([line for line in done.stdout.splitlines() if line.startswith("  ok")]) == 2 * len(ALL)
    assert "held by cuStreamWaitValue32" in done.stdout
    folder = tmp_path / "gpuboost" / "proven"
    assert sorted(os.listdir(folder)) == [NAME, NAME.replace("0__", "1__")]
    assert (folder / NAME).read_text().startswith("proven 1\n")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, folder / NAME)] == [
        0o700, 0o700, 0o600]


@pytest.mark.parametrize("settings, failed", [
    ({"GPUSIM_SMALL_COPY_BYTES": "0"}, [SMALL]),
    ({"GPUSIM_SMALL_COPY_BYTES": "1G"}, []),
    ({"GPUSIM_PAGEABLE_BLOCKS": "0"}, []),
    ({"GPUSIM_ATTRIBUTES": "100:1"}, [COHERENT]),
    ({"GPUSIM_ATTRIBUTES": "41:0"}, [COHERENT]),
    ({"GPUSIM_ATTRIBUTES": "92:0,122:0"}, []),  # no cuStreamWaitValue: host functions hold the streams
    ({"GPUSIM_ATTRIBUTES": "102:0"}, []),
    ({"GPUSIM_CLOCK": "virtual"}, []),
    ({"GPUSIM_COPY_ENGINES": "1", "GPUSIM_FREE_DRAINS": "0"}, []),
    ({"GPUSIM_DEVICES": "2", "GPUSIM_FAULT": "cuDevicePrimaryCtxRetain:2:46"}, []),  # DEVICE_UNAVAILABLE
    ({"GPUSIM_FAULT": "cuMemCreate:*:2"}, [MAPPED]),
    ({"GPUSIM_FAULT": "cuEventRecord:1:800"}, [UNFINISHED]),
])
def test_each_end_of_what_is_not_specified(tmp_path, settings, failed):
    left = tmp_path / "gpuboost" / "proven" / NAME
    left.parent.mkdir(parents=True)
    left.write_text("proven 1\n" if failed else "proven 0\n")  # of an earlier time
    done = prove_simulated(tmp_path, **settings)
    assert having("FAILED", done.stdout) == failed, done.stdout + done.stderr
    not_available = [ORDER_DEVICES] + ([MAPPED] if "102:0" in settings.values() else [])
    assert having("n.a.", done.stdout) == not_available
    assert done.returncode == (1 if failed else 0)
    if failed:
        assert "NOT PROVEN: 1 of 11 probes FAILED" in done.stdout and not left.exists()
    else:
        assert left.read_text().startswith("proven 1\n")
    if "92:0,122:0" in settings.values():
        assert "held by a host function" in done.stdout


# Drivers that break one promise each, on top of the simulated one: what the probes must say of them.
BROKEN = {
    "waits_for_nothing": ([ORDER, ORDER_DEVICES, AGAIN], """
        def cuStreamWaitEvent(self, stream, event, flags): return 0"""),
    "says_done": ([UNFINISHED, BEHIND, ORDER, ORDER_DEVICES, AGAIN, THROUGH], """
        def cuEventQuery(self, event): return 0"""),
    "never_done": ([UNFINISHED], """
        def cuStreamQuery(self, stream): return 0"""),
    "reads_the_source_late": ([LARGE, SMALL], """
        late = []
        def cuMemcpyHtoDAsync_v2(self, target, source, size, stream, name="cuMemcpyHtoDAsync_v2"):
            kind = ctypes.c_int(0)  # 1 stands for CU_MEMORYTYPE_HOST
            if super().result("cuPointerGetAttribute", ctypes.byref(kind), 2, source) == 0:
                return super().result(name, target, source, size, stream)
            self.late.append((name, target, source, size, stream))
            return 0
        def cuMemcpyAsync(self, target, source, size, stream):
            return self.cuMemcpyHtoDAsync_v2(target, source, size, stream, "cuMemcpyAsync")
        def cuStreamSynchronize(self, stream):
            result = super().result("cuStreamSynchronize", stream)
            while self.late:
                super().result(*self.late.pop())
            return result"""),
    "sees_the_last_record_only": ([AGAIN], """
        waits = []
        def cuStreamWaitEvent(self, stream, event, flags):
            self.waits.append((stream, event))
            return 0
        def cuMemcpyDtoDAsync_v2(self, target, source, size, stream):
            while self.waits:
                super().result("cuStreamWaitEvent", *self.waits.pop(), 0)
            return super().result("cuMemcpyDtoDAsync_v2", target, source, size, stream)
        def cuMemcpyHtoDAsync_v2(self, target, source, size, stream):
            while self.waits:
                super().result("cuStreamWaitEvent", *self.waits.pop(), 0)
            return super().result("cuMemcpyHtoDAsync_v2", target, source, size, stream)"""),
    "keeps_memory": ([MAPPED], """
        def cuMemRelease(self, handle): return 0"""),
    "copies_out_of_turn": ([THROUGH], """
        def cuMemcpyDtoDAsync_v2(self, target, source, size, stream):
            if not Hold.now or stream != Hold.now[-1]:
                return super().result("cuMemcpyDtoDAsync_v2", target, source, size, stream)
            return super().result("cuMemcpyDtoD_v2", target, source, size)"""),
    "knows_no_relaxed_mode": ([CAPTURE], """
        def cuThreadExchangeStreamCaptureMode(self, mode): return 0"""),
}
RUN_BROKEN = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from gpuboost import cuda, probes
class Hold(cuda.Hold):
    now = []
    def __enter__(self):
        self.now.append(self.stream)
        return super().__enter__()
    def __exit__(self, *rest):
        super().__exit__(*rest)
        self.now.pop()
probes.Hold = Hold
class Broken(cuda.Driver):
    def result(self, name, *arguments):
        own = type(self).__dict__.get(name)
        return own(self, *arguments) if own else super().result(name, *arguments)
{body}
def say(line):
    if "status" in line:
        print("  {{status}}  {{what}}: {{answer}}".format(**line), flush=True)
    elif "end" in line:
        os._exit(0)  # the first device will do
probes.run_all(Broken(), say)
"""


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_promise_is_noticed(name):
    failed, body = BROKEN[name]
    body = textwrap.indent(textwrap.dedent(body), "    ")
    done = subprocess.run([GPUSIM, sys.executable, "-c", RUN_BROKEN.format(body=body), ROOT / "scripts"],
                          env=environment(GPUSIM_DEVICES="2"), capture_output=True, text=True, timeout=120)
    assert having("FAILED", done.stdout) == failed, done.stdout + done.stderr


# --- what surrounds the probes ---

def fake_probes(tmp_path, monkeypatch, code):
    script = tmp_path / "probes.py"
    script.write_text("import json, os, sys, time\n"
                      "def say(**line): print(json.dumps(line), flush=True)\n"
                      "say(device='Tesla T4/\\u0141', ordinals=[0, 2], driver=12040)\n"
                      "say(what='it works', status='ok', answer='yes', how='tried')\n" + code)
    monkeypatch.setattr(prove, "PROBES", str(script))
    monkeypatch.setattr(os, "environ", {**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    return tmp_path / "gpuboost" / "proven" / "12040-Tesla_T4__"


def test_an_end_in_order(tmp_path, monkeypatch, capsys):
    path = fake_probes(tmp_path, monkeypatch, "say(end=True)\n")
    assert prove.main(None) == 0
    said = capsys.readouterr().out
    assert said.startswith("gpuboost prove: Tesla T4/Ł (devices 0, 2), driver 12.4\n  ok      it works: yes (tried)\n")
    assert path.read_text() == "proven 1\nTesla T4/Ł (devices 0, 2), driver 12.4\nok      it works: yes (tried)\n"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("code, said", [
    ("time.sleep(60)\n", "the probes did not end within 0.5 s"),
    ("os.kill(os.getpid(), 11)\n", "the probes ended with status -11"),
    ("say(error='cuX answered Y')\n", "cuX answered Y"),
])
def test_probes_that_do_not_come_to_an_end_prove_nothing(tmp_path, monkeypatch, capsys, code, said):
    path = fake_probes(tmp_path, monkeypatch, code)
    monkeypatch.setattr(prove, "TIME_LIMIT_S", 0.5 if "sleep" in code else 60)
    path.parent.mkdir(parents=True)
    path.write_text("proven 1\n")
    assert prove.main(None) == 1
    captured = capsys.readouterr()
    assert captured.err == f"gpuboost: prove: {said}\n" and "NOT PROVEN: the probes did not come to an end" in captured.out
    assert not path.exists()


def test_the_library_stays_out(tmp_path):
    library = str(ROOT / os.environ.get("GPUBOOST_LIBRARY", "build/libgpuboost.so"))
    done = prove_simulated(tmp_path / "state", LD_PRELOAD=library, GPUBOOST_OUT=str(tmp_path / "run"),
                           CUDA_LAUNCH_BLOCKING="1")
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "run").exists()


def test_environment_of_the_probes(monkeypatch):
    monkeypatch.setattr(os, "environ", {"LD_PRELOAD": "/a/libgpuboost.so /b.so", "CUDA_LAUNCH_BLOCKING": "1", "A": "b"})
    assert prove.environment() == {"LD_PRELOAD": "/b.so", "GPUBOOST_DISABLE": "1", "A": "b"}
    monkeypatch.setattr(os, "environ", {"LD_PRELOAD": "/a/libgpuboost.so"})
    assert prove.environment() == {"GPUBOOST_DISABLE": "1"}


@pytest.mark.parametrize("settings, said", [
    ({"GPUSIM_DEVICES": "0"}, "gpuboost: prove: cuInit answered CUDA_ERROR_NO_DEVICE\n"),
    ({"GPUSIM_ATTRIBUTES": "100:1", "XDG_STATE_HOME": "", "HOME": ""},
     "gpuboost: prove: no HOME and no XDG_STATE_HOME: there is no place for the answer\n"),
    ({"XDG_STATE_HOME": "/proc"}, "gpuboost: prove: /proc/gpuboost: "),
])
def test_errors(settings, said):
    done = subprocess.run([GPUSIM, COMMAND, "prove"], env=environment(**settings), capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 2 and done.stderr.startswith(said) and "Traceback" not in done.stderr


def test_no_driver_at_all(tmp_path):
    done = gpuboost("prove", XDG_STATE_HOME=str(tmp_path), LD_LIBRARY_PATH=str(tmp_path))
    if done.returncode != 2:
        pytest.skip("this machine has a GPU of its own")
    assert "libcuda.so.1" in done.stderr and "Traceback" not in done.stderr and not (tmp_path / "gpuboost").exists()


def counts_of(tmp_path, **settings):
    """The named counters of a short naive training under the library."""
    out = tmp_path / "run"
    done = gpuboost("run", "--out", out, "--", *training("train_naive", "--steps", 12, "--batch", 256, "--log-every", 0),
                    **settings)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (out / "record.jsonl").read_text().splitlines()]
    return [line for line in lines if line["type"] == "snapshot"][-1]["counts"]


@pytest.mark.parametrize("proven", [True, False])
def test_the_library_reads_the_answer(tmp_path, proven):
    if proven:
        assert prove_simulated(tmp_path).returncode == 0
    counts = counts_of(tmp_path, XDG_STATE_HOME=str(tmp_path))
    assert bool(counts.get("elide.waits")) == proven
    assert bool(counts.get("elide.declined.not_proven")) != proven
