"""The unmodified PyTorch wheel on the simulated GPU: what works, and that its losses have teeth.

Each test runs a small script under scripts/gpusim in a process of its own, in virtual time, so that
nothing here depends on how fast the machine is.
"""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUSIM = ROOT / "scripts" / "gpusim"
SEEDS = range(1, 7)


def run(script, timeout=240, **settings):
    """Runs a script under the simulated GPU and returns what it printed."""
    env = {k: v for k, v in os.environ.items()
           if k == "GPUSIM_BUILD" or not k.startswith(("GPUSIM_", "GPUBOOST"))}
    env.pop("LD_PRELOAD", None)
    env.update(GPUSIM_CLOCK="virtual", PYTHONWARNINGS="ignore", OMP_NUM_THREADS="1")
    env.update({k: str(v) for k, v in settings.items()})
    done = subprocess.run(
        [str(GPUSIM), sys.executable, "-c", textwrap.dedent(script)],
        env=env, timeout=timeout, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def test_help_lists_the_settings():
    done = subprocess.run([str(GPUSIM), "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "GPUSIM_SEED" in done.stdout + done.stderr


def test_missing_build_is_said_plainly(tmp_path):
    done = subprocess.run([str(GPUSIM), "true"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "GPUSIM_BUILD": str(tmp_path)})
    assert done.returncode != 0 and "make sim" in done.stderr


def test_preload_order_is_kept(tmp_path):
    library = tmp_path / "libfirst.so"
    source = tmp_path / "first.c"
    source.write_text("int first_marker;")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    done = subprocess.run([str(GPUSIM), "sh", "-c", "echo $LD_PRELOAD"], capture_output=True,
                          text=True, timeout=60, env={**os.environ, "LD_PRELOAD": str(library)})
    assert done.stdout.startswith(f"{library}:") and "libcudart.so.12" in done.stdout


def test_devices():
    out = run("""
        import torch
        print(torch.cuda.is_available(), torch.cuda.device_count())
        for i in range(torch.cuda.device_count()):
            print(torch.cuda.get_device_name(i))
            x = torch.arange(10, device=f'cuda:{i}').clone()
            assert x.device.index == i
            assert torch.equal(x.to('cuda:0').cpu(), x.cpu())
    """, GPUSIM_DEVICES=2).splitlines()
    assert out[0] == "True 2"
    assert len(out) == 3 and all(name.startswith("SIMULATED") for name in out[1:])


def test_copies_round_trip():
    run("""
        import torch
        torch.manual_seed(0)
        types = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                 torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.complex64]
        for n in (1, 3, 17, 255, 4097, 65537, 1_000_003):
            for dtype in types:
                x = (torch.rand(n) * 100).to(dtype)
                assert torch.equal(x.cuda().cpu(), x), (n, dtype, 'blocking')
                assert torch.equal(x.cuda(non_blocking=True).cpu(), x), (n, dtype, 'async')
                assert torch.equal(x.pin_memory().cuda(non_blocking=True).clone().cpu(), x)
                y = x.cuda().to('cpu', non_blocking=True)
                torch.cuda.synchronize()
                assert torch.equal(y, x), (n, dtype, 'async back')
    """)


def test_strided_and_converting_copies_are_exact():
    run("""
        import torch
        torch.manual_seed(0)
        a = torch.randn(65, 33, 7)
        for view in (lambda t: t.permute(2, 0, 1), lambda t: t[::2, 3:], lambda t: t[:, 1],
                     lambda t: t.transpose(0, 1), lambda t: t.expand(2, 65, 33, 7)):
            assert torch.equal(view(a.cuda()).contiguous().cpu(), view(a).contiguous())
            assert torch.equal(view(a).cuda(non_blocking=True).cpu(), view(a))
        for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32):
            assert torch.equal((a * 50).cuda().to(dtype).cpu(), (a * 50).to(dtype)), dtype
            assert torch.equal((a * 50).to(dtype).cuda().float().cpu(), (a * 50).to(dtype).float())
        every = torch.arange(-32768, 32768, dtype=torch.int16)
        bits = torch.randint(-2**31, 2**31, (200_000,), dtype=torch.int64).to(torch.int32)
        for dtype in (torch.float16, torch.bfloat16):
            wide = every.view(dtype)
            assert torch.equal(wide.cuda().float().cpu().nan_to_num(), wide.float().nan_to_num())
            for single in (bits.view(torch.float32), torch.randn(200_000) * 1e-5):
                narrow = single.cuda().to(dtype).cpu()
                assert torch.equal(narrow.nan_to_num(), single.to(dtype).nan_to_num()), dtype
        b = torch.zeros(8, 8, device='cuda')
        b[2] = 1.5
        b[:, 3] = 7
        c = torch.zeros(8, 8)
        c[2] = 1.5
        c[:, 3] = 7
        assert torch.equal(b.cpu(), c)
        b[:, ::2] = torch.ones(8, 4, device='cuda')
        c[:, ::2] = 1
        assert torch.equal(b.cpu(), c)
    """)


def test_results_depend_on_contents_only():
    run("""
        import torch
        x = torch.randn(5000)
        keep = []

        def result(value):
            keep.append(torch.empty(777, device='cuda'))  # another address each time
            return (torch.relu(value.cuda() * 2 + 1) @ torch.ones(5000, 1).cuda()).sum().item()

        first = result(x)
        assert 0.1 < first < 1 and result(x) == first
        for at in (0, 2500, 4999):
            other = x.clone()
            other[at] += 1
            assert result(other) != first, at
        assert torch.equal(x.cuda().clone().cpu(), x)
    """)


def test_training_features():
    run("""
        import io, torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Dropout(0.1), nn.Flatten(), nn.Linear(8 * 7 * 7, 10)).cuda()
        before = [p.detach().cpu().clone() for p in model.parameters()]
        for fused in (False, True):
            optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
            scaler = torch.amp.GradScaler('cuda')
            for dtype in (torch.float16, torch.bfloat16):
                with torch.autocast('cuda', dtype=dtype):
                    loss = nn.functional.cross_entropy(
                        model(torch.randn(4, 3, 16, 16).cuda()), torch.randint(0, 10, (4,)).cuda())
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                assert 0 < loss.item() < 1
        assert not any(torch.equal(a, b.cpu()) for a, b in zip(before, model.parameters()))
        stored = io.BytesIO()
        torch.save(model.state_dict(), stored)
        stored.seek(0)
        state = torch.load(stored, map_location='cpu')
        assert all(torch.equal(state[k], v.cpu()) for k, v in model.state_dict().items())
    """)


def test_transformer_step():
    out = run("""
        import torch
        from torch import nn
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation='gelu')
        model = nn.Sequential(nn.Embedding(100, 64), layer, nn.LayerNorm(64), nn.Linear(64, 100))
        model = model.cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            ids = torch.randint(0, 100, (4, 32)).cuda()
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            print(loss.item())
    """).split()
    assert len(set(out)) == 2 and all(0 < float(x) < 1 for x in out)


def test_recurrent_networks():
    run("""
        import torch
        torch.manual_seed(0)
        for kind, options in ((torch.nn.LSTM, dict(num_layers=2, bidirectional=True, dropout=0.1)),
                              (torch.nn.GRU, dict(batch_first=True)),
                              (torch.nn.RNN, dict(bias=False))):
            model = kind(8, 16, **options)
            before = [p.detach().clone() for p in model.parameters()]
            model = model.cuda()
            assert all(torch.equal(a, b.cpu()) for a, b in zip(before, model.parameters()))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loss = model(torch.randn(5, 3, 8).cuda())[0].square().mean()
            loss.backward()
            optimizer.step()
            assert 0.1 < loss.item() < 1
            assert not any(torch.equal(a, b.cpu()) for a, b in zip(before, model.parameters()))
    """)


def test_dataloader_with_workers_and_pinning():
    run("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        x = torch.arange(96.).reshape(32, 3)
        loader = DataLoader(TensorDataset(x), batch_size=8, num_workers=2, pin_memory=True)
        seen = [b.cuda(non_blocking=True) for (b,) in loader]
        assert torch.equal(torch.cat([s.cpu() for s in seen]), x)
    """)


def test_expandable_segments():
    run("""
        import torch
        x = torch.randn(3_000_000)
        for _ in range(3):
            y = x.cuda()
            z = torch.empty(20_000_000, device='cuda')
            assert torch.equal(y.cpu(), x)
            del y, z
            torch.cuda.empty_cache()
    """, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")


def test_graph_capture_and_replay():
    run("""
        import torch
        x = torch.zeros(1000, device='cuda')
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            y = torch.relu(x + 1)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.relu(x + 1)
        seen = set()
        for i in range(3):
            value = torch.randn(1000)
            x.copy_(value)
            graph.replay()
            eager = torch.relu(value.cuda() + 1)
            assert torch.equal(y.cpu(), eager.cpu())
            seen.add(y.sum().item())
        assert len(seen) == 3
    """)


def test_sleep_and_event_times():
    run("""
        import torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        torch.cuda._sleep(7_000_000)
        end.record()
        assert not end.query()
        end.synchronize()
        assert 7 <= start.elapsed_time(end) < 8, start.elapsed_time(end)
    """)


def test_out_of_memory_is_torchs_error():
    run("""
        import torch
        try:
            torch.empty(1 << 50, dtype=torch.uint8, device='cuda')
        except torch.OutOfMemoryError as error:
            assert 'out of memory' in str(error)
        else:
            raise SystemExit('no error')
        assert torch.ones(3, device='cuda').cpu().sum() == 3
    """)


TRAIN = """
    import torch, torchvision
    from torch import nn
    torch.manual_seed(0)
    kind = {kind!r}
    if kind == 'mlp':
        model, shape = nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.ReLU(),
                                     nn.Linear(64, 10)), (3, 8, 8)
    else:
        model, shape = torchvision.models.resnet18(num_classes=10), (3, 32, 32)
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        x, y = torch.randn(8, *shape), torch.randint(0, 10, (8,))
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("kind, seeds", [("mlp", 6), ("resnet", 3)])
def test_training_is_deterministic_for_every_schedule(kind, seeds):
    outs = {run(TRAIN.format(kind=kind), GPUSIM_SEED=seed) for seed in range(1, seeds + 1)}
    assert len(outs) == 1, outs
    losses = [float(x) for x in outs.pop().split()]
    assert len(set(losses)) == 4 and all(0.1 < loss < 1 for loss in losses)


@pytest.mark.parametrize("changed", ["x[7] += 1", "y[7] = (y[7] + 1) % 10",
                                     "model[3].weight.data[9] += 1"])
def test_loss_depends_on_inputs_labels_and_weights(changed):
    script = """
        import torch
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
        x, y = torch.randn(8, 192), torch.randint(0, 10, (8,))
        {}
        print(nn.functional.cross_entropy(model(x.cuda()), y.cuda()).item())
    """
    assert run(script.format("pass")) != run(script.format(changed))


# Two mistakes people make. Each must change the result for some schedule, or the simulated GPU
# could not show that a copy was taken too early or too late.
RACES = {
    "reused pinned buffer": """
        import torch
        buffer = torch.zeros(100_000).pin_memory()
        for step in range(4):
            buffer.fill_(step)
            x = buffer.to('cuda', non_blocking=True)
            print((x * 2).sum().item())
            buffer.fill_(-1)
            y = buffer.to('cuda', non_blocking=True)
            buffer.fill_(-2)
            print((y * 2).sum().item())
    """,
    "side stream without wait": """
        import torch
        side = torch.cuda.Stream()
        source = torch.arange(100_000.).pin_memory()
        for step in range(4):
            x = torch.zeros(100_000, device='cuda')
            torch.cuda.synchronize()
            torch.cuda._sleep(1000)
            with torch.cuda.stream(side):
                x.copy_(source, non_blocking=True)
            print((x * 2).sum().item())
            torch.cuda.synchronize()
    """,
}


@pytest.mark.parametrize("name", sorted(RACES))
def test_races_show(name):
    outs = {run(RACES[name], GPUSIM_SEED=seed) for seed in SEEDS}
    assert len(outs) > 1, f"{name}: every schedule gave {outs.pop().split()}"


def test_fixed_race_does_not_show():
    script = RACES["side stream without wait"].replace(
        "print((x", "torch.cuda.current_stream().wait_stream(side)\n            print((x")
    outs = {run(script, GPUSIM_SEED=seed) for seed in SEEDS}
    assert len(outs) == 1, outs
