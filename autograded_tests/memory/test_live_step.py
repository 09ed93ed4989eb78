"""Predicted peaks of whole steps against live storage on the CPU: how much, and when.

Two percent would do for a course; what is asked here is a hundredth of a percent, so that one tensor of the residual
stream too many is seen.
"""

from dataclasses import replace

import pytest
import torch
from torch.distributed._tools.mem_tracker import MemTracker

from trainmem.measure.live import live_storage
from trainmem.measure.models import GPTLayer, Head, LlamaLayer, MasterAdam, Transformer
from trainmem.measure.naming import Moment
from trainmem.memory import Step, embedding, gpt_layer, head, llama_layer

B, H, A, L, V = 2, 64, 4, 12, 256
SETTINGS = [
    ("none", None),
    *(("full", every) for every in (1, 2, 3, 4, 6, 12)),
    ("selective", None),
]


def batch(s):
    return torch.randint(V, (B, s)), torch.randint(V, (B, s))


def measure(model, s):
    """Live storage over forward, backward and optimizer step of a model with mixed-precision Adam."""
    model = model.to(torch.bfloat16)
    adam, (tokens, targets) = MasterAdam(model.parameters()), batch(s)
    with live_storage([*model.parameters(), *adam.states], [tokens, targets]) as live:
        before = live.live_bytes
        model(tokens, targets).backward()
        adam.step()
        adam.zero_grad()
        assert live.live_bytes == before
    return live


def predict(layer, s, layers=L, every=None):
    step = Step(
        layer, layers, embedding=embedding(s, B, H, V), head=head(s, B, H, V, statistics="bf16"), optimizer="loop"
    )
    return step.timeline(every, "operation")


def moment(event):
    """The predicted event in the measurement's words."""
    if event.operation.startswith("rebuilding "):
        return Moment("rebuild", event.block, event.layer, event.operation.removeprefix("rebuilding "))
    return Moment(event.phase, event.block, event.layer, event.operation)


def gpt_step(s, recompute, every, attention="eager"):
    options = {"attention": attention, "recompute": "selective" if recompute == "selective" else "none"}
    live = measure(Transformer([GPTLayer(H, A, **options) for _ in range(L)], H, V, every=every), s)
    return live, predict(gpt_layer(s, B, H, A, statistics="bf16", **options), s, every=every)


@pytest.mark.parametrize("s", [64, 128, 256])
@pytest.mark.parametrize(("recompute", "every"), SETTINGS)
def test_twelve_layers(s, recompute, every):
    live, timeline = gpt_step(s, recompute, every)
    assert timeline.peak_bytes == pytest.approx(live.peak_bytes, rel=1e-4)
    assert moment(timeline.peak_event) == live.peak_moment


@pytest.mark.parametrize(("recompute", "every"), [("none", None), ("full", 1), ("full", 5)])
def test_twelve_layers_with_fused_attention(recompute, every):
    live, timeline = gpt_step(128, recompute, every, "fused")
    assert timeline.peak_bytes == pytest.approx(live.peak_bytes, rel=1e-4)
    assert moment(timeline.peak_event) == live.peak_moment


@pytest.mark.parametrize(("recompute", "every"), [("none", None), ("full", 3), ("selective", None)])
def test_not_only_the_peak_but_every_operation(recompute, every):
    live, timeline = gpt_step(128, recompute, every)
    highest = {}
    for when, held in live.history:
        highest[when] = max(highest.get(when, 0), held)
    seen = 0
    for event in timeline.events:
        if moment(event) in highest and event.phase != "optimizer":  # an addition's backward pass makes no tensor
            seen += 1
            # Bias gradients come a little later or earlier than said; and the loop over the layers of a checkpointed
            # segment still refers to a layer's input, one tensor of the residual stream, until the layer is through.
            referred = 2 * 128 * B * H if event.phase == "forward" and every else 0
            assert 0 <= highest[moment(event)] - event.during_bytes + 1024 <= 2048 + referred, event.name
    assert seen > 400


LLAMA = [
    {},
    {"norm": "by hand"},
    {"norm": "composite"},
    {"attention": "eager"},
    {"attention": "eager", "softmax": "fp32"},
]


@pytest.mark.parametrize("options", [*LLAMA, {"attention": "eager", "recompute": "selective"}], ids=str)
def test_llama_layers(options):
    options = {"f": 160, "kv": 2, "rotary": False, **options}
    for every in (None,) if "recompute" in options else (None, 2):
        live = measure(Transformer([LlamaLayer(H, A, **options) for _ in range(4)], H, V, every=every), 128)
        timeline = predict(llama_layer(128, B, H, A, **options), 128, 4, every)
        assert timeline.peak_bytes == pytest.approx(live.peak_bytes, rel=1e-4)
        assert moment(timeline.peak_event) == live.peak_moment


@pytest.mark.parametrize(("loss", "kept", "peak"), [("fp32", 4, 12), ("bf16", 2, 6)])
def test_bytes_per_logit(loss, kept, peak):
    s, h, wide = 64, 8, 4096
    layer, x, targets = Head(h, wide, loss=loss).to(torch.bfloat16), torch.randn(B, s, h), torch.randint(wide, (B, s))
    x = x.to(torch.bfloat16).requires_grad_()
    with live_storage([*layer.parameters(), x], [targets]) as live:
        before = live.live_bytes
        result = layer(x, targets)
        assert (live.live_bytes - before) / (s * B * wide) == pytest.approx(kept, rel=0.02)
        live.restart()
        result.backward()
        assert (live.peak_bytes - before) / (s * B * wide) == pytest.approx(peak, rel=0.02)
    assert live.peak_moment.operation == "log_softmax"


def logit_bytes(**options):
    """The simulator's peak of bytes per logit for a head."""
    top = head(64, B, 8, 4096, **options)
    timeline = Step(gpt_layer(64, B, 8, 2), 1, head=top).timeline()
    return max(timeline.during[:, 6]) / (64 * B * 4096)


def test_bytes_per_logit_as_predicted():
    assert logit_bytes(loss="fp32") == logit_bytes(loss="autocast") == pytest.approx(12, rel=1e-4)
    assert logit_bytes(loss="bf16") == pytest.approx(6, rel=1e-4)
    assert logit_bytes(loss="fp32", referenced=True) == pytest.approx(16, rel=1e-4)
    assert logit_bytes(loss="autocast", referenced=True) == pytest.approx(14, rel=1e-4)


@pytest.mark.parametrize("kind", ["fp32", "autocast"])
def test_logits_that_the_program_still_holds(kind):
    s, wide = 64, 4096
    x = torch.randn(B * s, wide, dtype=torch.bfloat16, requires_grad=True)
    targets = torch.randint(wide, (B * s,))
    with live_storage([x], [targets]) as live:
        before = live.live_bytes
        logits = x * 1  # a bf16 tensor as an output layer makes it
        if kind == "fp32":
            logits = logits.float()
            loss = torch.nn.functional.cross_entropy(logits, targets)
        else:
            loss = torch.nn.functional.cross_entropy(logits.float(), targets)
        loss.backward()
    assert (live.peak_bytes - before) / (B * s * wide) == pytest.approx(
        logit_bytes(loss=kind, referenced=True), rel=0.02
    )


@pytest.mark.parametrize("optimizer", ["foreach", "loop", "fused"])
def test_what_adam_takes_for_a_moment(optimizer):
    layer = gpt_layer(8, B, H, A)
    sizes = [matrix.elements for matrix in layer.matrices]
    parameters = [torch.nn.Parameter(torch.randn(size)) for size in sizes]
    adam = torch.optim.Adam(parameters, foreach=optimizer == "foreach", fused=optimizer == "fused")
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    adam.step()
    held = [x for state in adam.state.values() for x in state.values()]
    with live_storage([*parameters, *(x.grad for x in parameters), *held]) as live:
        before = live.live_bytes
        adam.step()
    timeline = Step(layer, 1, optimizer=optimizer).timeline(None, "operation")
    assert live.peak_bytes - before == timeline.event(len(timeline) - 1).during["working"]


@pytest.mark.parametrize(("recompute", "every"), [("none", None), ("full", 2), ("selective", None)])
def test_pytorch_s_own_tracker_agrees(recompute, every):
    s = 128
    layers = [GPTLayer(H, A, recompute=recompute if recompute == "selective" else "none") for _ in range(L)]
    model = Transformer(layers, H, V, every=every).to(torch.bfloat16)
    adam, (tokens, targets) = MasterAdam(model.parameters()), batch(s)
    tracker = MemTracker()
    tracker.track_external(model, *adam.states, tokens, targets)
    with tracker:
        model(tokens, targets).backward()
    second = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"] - tokens.nbytes - targets.nbytes
    block = gpt_layer(s, B, H, A, statistics="bf16", recompute=recompute if recompute == "selective" else "none")
    assert predict(block, s, every=every).peak_bytes == pytest.approx(second, rel=0.001)


# --- planted faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgotten", ["softmax", "attention_dropout", "gelu"])
def test_a_layer_that_forgets_a_tensor_misses_the_peak(forgotten):
    layer = gpt_layer(256, B, H, A, statistics="bf16")
    wrong = replace(
        layer, operations=tuple(replace(op, keeps=()) if op.name == forgotten else op for op in layer.operations)
    )
    live, timeline = gpt_step(256, "none", None)
    assert timeline.peak_bytes == pytest.approx(live.peak_bytes, rel=0.02)
    assert predict(wrong, 256).peak_bytes != pytest.approx(live.peak_bytes, rel=0.02)
