"""Figure 2: the parameters of one layer, matrix by matrix, and of the model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from trainmem.figures.amounts import number, table
from trainmem.figures.frame import Figure, Picture, choice, field, slider, switch
from trainmem.figures.svg import BLUE, GREEN, GREY, ORANGE, VERMILLION, Drawing, Layout, length_of, plain, ticks
from trainmem.figures.yours import Unwritten, YourFunction, asked, drawable
from trainmem.memory import MODELS, gpt_layer, llama_layer
from trainmem_solutions import model_params, params_per_layer

TITLE = "Parameters of one layer"

#: Weight of `gpt_layer` or `llama_layer` → how the lesson writes it.
SYMBOLS = {
    "q_proj": "W_Q",
    "k_proj": "W_K",
    "v_proj": "W_V",
    "proj": "W_O",
    "fc1": "MLP, first",
    "fc2": "MLP, second",
    "gate": "MLP, gate",
    "up": "MLP, up",
    "down": "MLP, down",
}

Counter = Callable[..., float]


@dataclass(frozen=True)
class LayerNumbers:
    """The weight matrices of a layer (name, shape, parameters), what else it has, and the model around it."""

    h: int
    weights: tuple[tuple[str, str, int], ...]
    others: int
    layer: int
    model: int
    approximate: int
    embedding: int


@lru_cache(maxsize=256)
def layer_numbers(style: str, h: int, f: int, g: int, L: int, V: int, tied: bool, positions: int) -> LayerNumbers:
    """A layer of width ``h`` with an MLP ``f`` wide and ``g`` query heads to a key/value head, in a model of L layers.

    ``approximate`` is 12Lh², ``embedding`` the parameters of the model outside its layers.
    """
    # The number of heads changes no matrix: g of them, which share one key/value head, are enough.
    llama = llama_layer(1, 1, h, g, f=f, kv=1).matrices
    matrices = llama if style == "llama" else gpt_layer(1, 1, h, 1, f=f).matrices
    narrow = {matrix.name: matrix for matrix in llama}
    weights = []
    for matrix in matrices:
        if matrix.kind == "weight":
            # With grouped queries the key and value matrices are narrower, in either style.
            matrix = narrow[matrix.name] if matrix.name in ("k_proj.weight", "v_proj.weight") else matrix
            shape = " × ".join(f"{size:,}" for size in matrix.sizes)
            weights.append((SYMBOLS[matrix.name.removesuffix(".weight")], shape, matrix.elements))
    options = {"mlp_ratio": f / h, "n_kv_ratio": 1 / g, "style": style}
    layer = params_per_layer(h, **options)
    whole = model_params(L, h, V, **options, tied=tied, positions=positions)
    others = layer - sum(count for *_, count in weights)
    bare = gpt_layer(1, 1, h, 1)
    approximate = L * sum(matrix.elements for matrix in bare.matrices if matrix.kind == "weight")
    return LayerNumbers(h, tuple(weights), others, layer, whole, approximate, whole - L * layer)


def draw(numbers: LayerNumbers, label: str, layout: Layout, yours: float | None = None) -> str:
    """The picture: a bar for each matrix in units of h², and the model against 12Lh²; a reader's layer L times over."""
    drawing = Drawing(layout)
    unit = numbers.h**2
    left = 130.0 if not layout.narrow else 96.0
    width = layout.width - left - (170 if not layout.narrow else 60)
    bars = [(name, shape, count, BLUE if name.startswith("W") else ORANGE) for name, shape, count in numbers.weights]
    bars.append(("biases, norms", "", numbers.others, GREEN))
    high = max(count / unit for *_, count, _ in bars)
    y = 22.0
    drawing.text(0, 13, f"in units of h² = {unit:,}")
    for name, shape, count, fill in bars:
        long = count / unit / high * width
        drawing.text(left - 6, y + 14, name, "end")
        drawing.rect(left, y, max(long, 1), 18, fill)
        words = number(count / unit) + (f"  ({shape})" if shape and not layout.narrow else "")
        drawing.text(left + max(long, 1) + 6, y + 14, words)
        y += 25
    for tick in ticks(high, 4):
        x = left + tick / high * width
        drawing.line(x, y, x, y + 4)
        drawing.text(x, y + 18, plain(tick), "middle")
    drawing.line(left, y, left + width, y)
    y += 34
    drawing.text(0, y, f"one layer: {numbers.layer:,} = {numbers.layer / unit:.2f} h²", bold=True)
    y += 26
    drawing.text(0, y, "the whole model", bold=True)
    y += 8
    inside = numbers.model - numbers.embedding
    own = 0 if yours is None else yours * inside / numbers.layer
    scale = (layout.width - 2) / max(numbers.model, numbers.approximate, own)
    drawing.rect(0, y, inside * scale, 22, BLUE)
    drawing.rect(inside * scale, y, numbers.embedding * scale, 22, GREY)
    layers = f"layers {_billions(inside)}"
    if length_of(layers, layout.size) < inside * scale:
        drawing.text(6, y + 16, layers, fill="#ffffff")
    y += 26
    drawing.rect(0, y, numbers.approximate * scale, 12, "none")
    y += 28
    drawing.text(
        0, y, f"12Lh² {_billions(numbers.approximate)}: {numbers.approximate / numbers.model:.3f} of the model"
    )
    y += 20
    share = f"embedding, final norm {_billions(numbers.embedding)} ({numbers.embedding / numbers.model:.1%})"
    drawing.key(0, y, GREY, share)
    if yours is not None:
        y += 26
        drawing.text(0, y, f"your params_per_layer: {yours:,.0f} = {yours / unit:.2f} h²", bold=True)
        y += 8
        drawing.rect(0, y, own * scale, 22, VERMILLION)
        words = f"L times {_billions(own)}"
        inside_bar = length_of(words, layout.size) + 8 < own * scale
        drawing.text(
            6 if inside_bar else max(own * scale, 0) + 6,
            y + 16,
            words,
            fill="#000000" if inside_bar else "currentColor",
        )
        y += 22
    return drawing.svg(label, y + 8, "narrow" if layout.narrow else "wide")


def _billions(count: float) -> str:
    return f"{number(count / 1e9)} B" if count >= 1e9 else f"{number(count / 1e6)} M"


def picture(
    title: str,
    style: str,
    h: int,
    f: int,
    g: int,
    L: int,
    V: int,
    tied: bool,
    positions: int,
    counter: Counter | None = None,
) -> Picture:
    """The figure for one layer and model."""
    numbers = layer_numbers(style, h, f, g, L, V, tied, positions)
    unit = h * h
    kind = "Llama-style" if style == "llama" else "GPT"
    bars = [*numbers.weights, ("biases and norms", "", numbers.others)]
    said = ", ".join(f"{name} {number(count / unit)}" for name, _, count in bars)
    layer = (
        f"One {kind} layer with h = {h:,} and f = {f:,} has {numbers.layer:,} parameters, "
        f"{numbers.layer / unit:.2f} h²."
    )
    model = (
        f"{title}: {numbers.model:,} parameters in {L} layers; 12Lh² is {numbers.approximate / numbers.model:.3f} "
        f"of it, the embedding with the final norm {numbers.embedding / numbers.model:.1%}."
    )
    label = f"{TITLE}. {layer} In units of h²: {said}. {model}"
    rows = [[name, shape, f"{count:,}", number(count / unit)] for name, shape, count in bars]
    rows.append(["one layer", "", f"{numbers.layer:,}", f"{numbers.layer / unit:.2f}"])
    text = f"<p>{escape(layer)}</p><p>{escape(model)}</p>"
    yours, said = None, ""
    if counter is not None:
        yours, said = _compared(counter, numbers.layer, h, f / h, 1 / g, style)
        text += f"<p>{escape(said)}</p>"
    text += table("Parameters of one layer", ["matrix", "shape", "parameters", "in h²"], rows, spare=1)
    sentence = f"{title}: {numbers.layer:,} parameters a layer, {numbers.model:,} in all"
    if yours is not None:
        sentence += f"; yours {yours:,.0f}"
    return Picture(sentence, lambda layout: draw(numbers, f"{label} {said}".strip(), layout, yours), text)


def _compared(
    counter: Counter, right: int, h: int, mlp_ratio: float, n_kv_ratio: float, style: str
) -> tuple[float | None, str]:
    """A reader's count, if there is one, and what to say of it. Raises `Unwritten` for a stub."""
    try:
        yours = asked(lambda: drawable(counter(h, mlp_ratio=mlp_ratio, n_kv_ratio=n_kv_ratio, style=style)))
    except Unwritten:
        raise
    except YourFunction as error:
        return None, str(error)
    difference = yours - right
    if abs(difference) <= 1e-9 * right:
        return yours, f"Your function gives {yours:,.0f} too."
    less = "more" if difference > 0 else "fewer"
    return yours, f"Your function gives {yours:,.0f}: {abs(difference):,.0f} {less}."


def layer_parameters(preset: str = "1.3b", *, counter: Counter | None = None) -> Figure:
    """The parameters of one layer as bars, one a matrix, in units of h², and the model's total against 12Lh².

    ``preset`` is a key of `trainmem.memory.MODELS`. ``counter`` is your own
    `params_per_layer` of exercise 1: its number is then drawn below the model, and held against the bars.
    """
    if preset not in MODELS:
        raise ValueError(f"preset is one of {', '.join(MODELS)}, not {preset!r}")
    model = MODELS[preset]
    models = choice("Model", [(m.title, name) for name, m in MODELS.items()] + [("your own numbers", "own")], preset)
    style = choice("Layer", [("GPT", "gpt"), ("Llama-style", "llama")], model.style)
    h = slider("Hidden size h", model.h, 64, 16384, 64)
    f = slider("MLP width f", model.f, 64, 65536, 64)
    grouped = [(f"{g}" if g > 1 else "1 (ordinary attention)", g) for g in (1, 2, 4, 8, 16, 32, 64)]
    g = choice("Queries a K/V head", grouped, model.a // model.kv)
    L, V = field("L", model.L, 1, 1000), field("V", model.V, 1, 10_000_000)
    positions = field("Positions", model.positions, 0, 1_000_000)
    tied = switch("Output layer shares the embedding", model.tied)

    def show() -> Picture:
        title = "your own numbers" if models.value == "own" else MODELS[models.value].title
        title = title[0].upper() + title[1:]
        sizes = (h.value, f.value, g.value, L.value, V.value, tied.value, positions.value)
        return picture(title, style.value, *sizes, counter)

    def preset_chosen() -> None:
        if models.value != "own":
            model = MODELS[models.value]
            style.value, h.value, f.value, g.value = model.style, model.h, model.f, model.a // model.kv
            L.value, V.value, positions.value, tied.value = model.L, model.V, model.positions, model.tied

    def changed() -> None:
        models.value = "own"

    controls = [[models, style, h, f, g], [L, V, positions, tied]]
    before = {control: changed for row in controls for control in row} | {models: preset_chosen}
    return Figure(TITLE, controls, show, before)
