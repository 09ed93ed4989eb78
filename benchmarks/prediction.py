"""Our predictions, what PyTorch holds, and what public calculators say: a layer, the loss, a whole step.

Run from the repository: python benchmarks/prediction.py [--llm-analysis PYTHON | --without-llm-analysis]

Everything is measured in the same run, on this computer's CPU, on layers of small size with the proportions of the
real ones (f/h, as/h, a/h, query heads a key/value head): in units of sbh, and per logit, size falls out. llm-analysis
is run as it is, in an environment of its own under build/ (made once; Python 3.11, since it pins a tokenizers release
that has no wheel for 3.12). The other calculators cannot be run without what they belong to: their formulas are
restated, each with its source.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from trainmem.measure.live import live_storage  # noqa: E402
from trainmem.measure.models import GPTLayer, Head, LlamaLayer, MasterAdam, Transformer  # noqa: E402
from trainmem.measure.saved import saved_tensors  # noqa: E402
from trainmem.memory import (  # noqa: E402
    CATEGORIES,
    MODELS,
    Block,
    Step,
    embedding,
    gpt_layer,
    head,
    llama_layer,
    model_step,
)

RELEASE = "llm-analysis==0.2.2"


@dataclass(frozen=True)
class Shape:
    """What a calculator is asked about; ``flash`` is attention in one kernel, ``full`` a checkpoint at every layer."""

    style: str
    L: int
    h: int
    a: int
    kv: int
    f: int
    V: int
    s: int
    b: int
    flash: bool = True
    full: bool = False

    @property
    def sbh(self) -> int:
        return self.s * self.b * self.h

    @property
    def psi(self) -> int:
        """Parameters (untied, no position table), as every calculator that is given them would have."""
        block = layer(self)
        return self.L * block.parameters + 2 * self.V * self.h + (2 if self.style == "gpt" else 1) * self.h


# --- ours, and what is measured -------------------------------------------------------------------------------------


def layer(shape: Shape, statistics: str = "bf16") -> Block:
    attention = "fused" if shape.flash else "eager"
    if shape.style == "gpt":
        return gpt_layer(shape.s, shape.b, shape.h, shape.a, f=shape.f, attention=attention, statistics=statistics)
    return llama_layer(shape.s, shape.b, shape.h, shape.a, f=shape.f, kv=shape.kv, attention=attention, rotary=False)


def module(shape: Shape) -> torch.nn.Module:
    attention = "fused" if shape.flash else "eager"
    if shape.style == "gpt":
        return GPTLayer(shape.h, shape.a, f=shape.f, attention=attention)
    return LlamaLayer(shape.h, shape.a, f=shape.f, kv=shape.kv, attention=attention, rotary=False)


def our_layer(shape: Shape) -> float:
    block = layer(shape)
    return (block.kept_bytes + block.extra_bytes) / shape.sbh


def measured_layer(shape: Shape) -> float:
    built = module(shape).to(torch.bfloat16)
    x = torch.randn(shape.b, shape.s, shape.h, dtype=torch.bfloat16, requires_grad=True)
    with saved_tensors(list(built.parameters())) as saved:
        built(x)
    return saved.nbytes / shape.sbh


def our_loss(at_the_peak: bool) -> float:
    s, b, h, V = 64, 2, 8, 4096
    timeline = Step(gpt_layer(s, b, h, 2), 1, head=head(s, b, h, V)).timeline(None, "operation")
    logits = CATEGORIES.index("logits")
    turn = next(i for i, event in enumerate(timeline.events) if event.phase == "backward")
    return (max(timeline.during[:, logits]) if at_the_peak else timeline.after[turn - 1, logits]) / (s * b * V)


def measured_loss(at_the_peak: bool) -> float:
    s, b, h, V = 64, 2, 8, 4096
    built, targets = Head(h, V).to(torch.bfloat16), torch.randint(V, (b, s))
    x = torch.randn(b, s, h).to(torch.bfloat16).requires_grad_()
    with live_storage([*built.parameters(), x], [targets]) as live:
        before = live.live_bytes
        result = built(x, targets)
        if not at_the_peak:
            return (live.live_bytes - before) / (s * b * V)
        live.restart()
        result.backward()
    return (live.peak_bytes - before) / (s * b * V)


def our_step(shape: Shape) -> float:
    block = layer(shape)
    top = head(shape.s, shape.b, shape.h, shape.V, statistics="bf16")
    bottom = embedding(shape.s, shape.b, shape.h, shape.V)
    step = Step(block, shape.L, head=top, embedding=bottom, optimizer="loop")
    return step.timeline(1 if shape.full else None).peak_bytes


def measured_step(shape: Shape) -> float:
    layers = [module(shape) for _ in range(shape.L)]
    model = Transformer(layers, shape.h, shape.V, every=1 if shape.full else None).to(torch.bfloat16)
    adam = MasterAdam(model.parameters())
    tokens, targets = torch.randint(shape.V, (2, shape.b, shape.s)).unbind()
    with live_storage([*model.parameters(), *adam.states], [tokens, targets]) as live:
        model(tokens, targets).backward()
        adam.step()
    return live.peak_bytes


# --- the others -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A calculator: units of sbh a layer, bytes a logit, bytes of a step (None: it says nothing of that)."""

    name: str
    layer: Callable[[Shape], float | None]
    logit: float | None
    step: Callable[[Shape], float | None]


def megatron(shape: Shape) -> float:
    """NVIDIA/Megatron-LM, megatron/training/theoretical_memory_usage.py, compute_activation_memory.

    The layer as it is reported under sequence parallelism with selective recomputation: 18 + 4f/h.
    """
    return 18 + 4 * shape.f / shape.h


def megatron_step(shape: Shape) -> float | None:
    """The same with 18 bytes a parameter, the embedding's inputs and dropout mask, and 4sb(h + V) for the output."""
    if shape.full:
        return None  # it knows no full recomputation
    tokens = shape.s * shape.b
    outside = 8 * tokens + tokens * shape.h + 4 * tokens * (shape.h + shape.V)
    return 18 * shape.psi + shape.L * shape.sbh * megatron(shape) + outside


def megatron_plain(shape: Shape) -> float:
    """The same file, compute_activation_memory_without_sp: 10 + 24/t whatever f is, and 5% on top."""
    return 1.05 * 34


def megatron_plain_step(shape: Shape) -> float | None:
    if shape.full:
        return None
    tokens = shape.s * shape.b
    outside = 8 * tokens + tokens * shape.h + 2 * tokens * (shape.h + shape.V)
    return 18 * shape.psi + 1.05 * (shape.L * shape.sbh * 34 + outside)


def eleuther(shape: Shape) -> float:
    """EleutherAI/cookbook, calc/calc_transformer_mem.py: 34 + 5as/h; with --checkpoint-activations 34.

    It has no option for fused attention; 34 is the nearest it comes.
    """
    return 34 if shape.flash or shape.full else 34 + 5 * shape.a * shape.s / shape.h


def eleuther_step(shape: Shape) -> float:
    """The same with bf16 gradients (--bytes-per-grad-ele 2): 16 bytes a parameter, and no logits."""
    return 16 * shape.psi + shape.L * shape.sbh * eleuther(shape)


def accelerate_step(shape: Shape) -> float:
    """huggingface/accelerate, src/accelerate/commands/estimate.py, estimate_training_usage: the largest of its stages.

    In 16 bits these are 4, 8, 6 and 8 bytes a parameter; activations are left out.
    """
    return 8 * shape.psi


def nothing(shape: Shape) -> None:
    return None


PEERS = (
    Peer("Megatron-LM, selective", megatron, 4, megatron_step),
    Peer("Megatron-LM, otherwise", megatron_plain, 1.05 * 2, megatron_plain_step),
    Peer("EleutherAI", eleuther, 0, eleuther_step),
    Peer("accelerate", nothing, None, accelerate_step),
)

#: Runs in llm-analysis's own environment: shapes from stdin, numbers to stdout.
ASK_LLM_ANALYSIS = """
import json, sys
from dataclasses import replace
from llm_analysis.analysis import ActivationRecomputation, LLMAnalysis
from llm_analysis.config import ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name
answers = []
gpu = replace(get_gpu_config_by_name("h100-sxm-80gb"), mem_per_GPU_in_GB=10**6)
for x in json.load(sys.stdin):
    def analysis(f):
        model = ModelConfig("asked", x["L"], x["a"], x["h"], x["V"], x["s"], x["kv"], ffn_embed_dim=f,
                            expansion_ratio=f / x["h"])
        return LLMAnalysis(model, gpu, get_dtype_config_by_name("w16a16e16"), ParallelismConfig())
    options = dict(flash_attn=x["flash"], softmax_dropout=x["style"] == "gpt" and not x["flash"])
    again = ActivationRecomputation.FULL if x["full"] else ActivationRecomputation.NONE
    layer = analysis(x["f"]).get_activation_memory_per_layer(x["b"], x["s"], is_inference=False, **options)
    # It counts two MLP matrices: for a gated MLP its own model files widen f by half to have the parameters right.
    wide = analysis(x["f"] * (1.5 if x["style"] == "llama" else 1))
    step = wide.training(x["b"], 1, x["b"], x["s"], activation_recomputation=again, **options)
    logits = wide.get_activation_memory_output_embedding(x["b"], x["s"]) / (x["s"] * x["b"] * x["V"])
    answers.append([layer / (x["s"] * x["b"] * x["h"]), logits, step["(weight+op_state+grad+act)_memory_per_gpu"]])
print("ANSWERS" + json.dumps(answers))
"""


def llm_analysis_python() -> Path:
    """An environment with llm-analysis, made the first time."""
    folder = ROOT / "build" / "llm-analysis"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", RELEASE], check=True)
        (folder / "ready").touch()
    return python


def ask_llm_analysis(python: Path, shapes: list[Shape]) -> Peer:
    asked = json.dumps([vars(shape) for shape in shapes])
    done = subprocess.run([python, "-c", ASK_LLM_ANALYSIS], input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answers = dict(zip(shapes, json.loads(done.stdout.split("ANSWERS")[1]), strict=True))
    logit = next(iter(answers.values()))[1]
    return Peer("llm-analysis", lambda shape: answers[shape][0], logit, lambda shape: answers[shape][2])


# --- the tables -----------------------------------------------------------------------------------------------------

#: Small layers with the proportions of the real ones.
LAYERS = {
    "LLaMA 7B, fused attention": Shape("llama", 1, 512, 4, 4, 1376, 64, 128, 1),
    "LLaMA 7B, s = 4096, eager attention": Shape("llama", 1, 64, 8, 8, 172, 64, 256, 1, flash=False),
    "Llama 2 70B, fused attention": Shape("llama", 1, 1024, 8, 1, 3584, 64, 64, 1),
    "GPT-style, fused attention": Shape("gpt", 1, 256, 2, 2, 1024, 64, 128, 1),
    "the 1.3B example, eager attention": Shape("gpt", 1, 128, 1, 1, 512, 64, 2048, 1, flash=False),
}
STEPS = {
    "Llama-style": Shape("llama", 12, 128, 4, 4, 344, 1024, 256, 2),
    "GPT-style, eager attention": Shape("gpt", 12, 128, 4, 4, 512, 1024, 128, 2, flash=False),
    "GPT-style, eager, every layer recomputed": Shape("gpt", 12, 128, 4, 4, 512, 1024, 128, 2, flash=False, full=True),
}
LARGE = Shape("llama", 32, 4096, 32, 32, 11008, 32000, 4096, 1)

Row = dict[str, float | None]


def table_rows(peers: tuple[Peer, ...]) -> dict[str, dict[str, Row]]:
    """Table → row → column → number."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = {
        name: {"measured": measured_layer(x), "trainmem": our_layer(x)} | {p.name: p.layer(x) for p in peers}
        for name, x in LAYERS.items()
    }
    loss = {
        name: {"measured": measured_loss(peak), "trainmem": our_loss(peak)} | {p.name: p.logit for p in peers}
        for name, peak in (("end of the forward pass", False), ("peak, in the backward pass", True))
    }
    steps = {
        name: {"measured": measured_step(x) / 1e6, "trainmem": our_step(x) / 1e6}
        | {p.name: (said := p.step(x)) and said / 1e6 for p in peers}
        for name, x in STEPS.items()
    }
    ours = model_step(MODELS["llama-7b"], LARGE.s, LARGE.b).timeline().peak_bytes
    large = {"LLaMA 7B, s = 4096, b = 1": {"trainmem": ours / 1e9}}
    large["LLaMA 7B, s = 4096, b = 1"] |= {p.name: (said := p.step(LARGE)) and said / 1e9 for p in peers}
    return {"layer": layers, "loss": loss, "step": steps, "large": large}


TITLES = {
    "layer": "A layer, in units of sbh",
    "loss": "The loss, in bytes per logit",
    "step": "A whole step of a small model, in MB",
    "large": "A whole step of a large model, in GB (predicted only: no measurement)",
}


def nearest(row: Row) -> set[str]:
    """The columns that are nearest to the measurement, to the digits that are printed."""
    said = {name: value for name, value in row.items() if name != "measured" and value is not None}
    off = {name: abs(round(value, 2) - round(row["measured"], 2)) for name, value in said.items()}
    return {name for name, value in off.items() if value < min(off.values()) + 0.005}


def markdown(title: str, rows: dict[str, Row]) -> str:
    """A table; what is nearest to the measurement is bold."""
    columns = list(next(iter(rows.values())))
    lines = [f"**{title}**", "", "| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, row in rows.items():
        bold = nearest(row) if "measured" in row else set()
        cells = [_cell(row[column], column in bold) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(value: float | None, bold: bool) -> str:
    if value is None:
        return "—"
    return f"**{value:.2f}**" if bold else f"{value:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llm-analysis", type=Path, metavar="PYTHON", help="an interpreter that has it")
    parser.add_argument("--without-llm-analysis", action="store_true", help="leave it out")
    options = parser.parse_args()
    peers, status = PEERS, 0
    if not options.without_llm_analysis:
        try:
            python = options.llm_analysis or llm_analysis_python()
            peers = (ask_llm_analysis(python, [*LAYERS.values(), *STEPS.values(), LARGE]), *PEERS)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            print(f"llm-analysis could not be run here, and is left out: {error}", file=sys.stderr)
            status = 1
    tables = table_rows(peers)
    print("\n\n".join(markdown(TITLES[name], rows) for name, rows in tables.items()))
    beaten = [
        f"{row}: {', '.join(nearest(columns))}"
        for name, rows in tables.items()
        for row, columns in rows.items()
        if "measured" in columns and "trainmem" not in nearest(columns)
    ]
    print("\ntrainmem is nearest to the measurement in every row." if not beaten else f"\nNearer: {beaten}")
    return status


if __name__ == "__main__":
    sys.exit(main())
