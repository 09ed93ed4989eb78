"""What each kind of operation keeps for its backward pass, and a block of operations built by that rule.

The list of kept tensors of a layer is never written down: a layer is written as its operations, each operation keeps
what the rule of its kind says, and the list follows. So a total is always the sum of a list, and the moment at which
each tensor appears and goes is known too (`trainmem.memory.step` uses that).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainmem.memory.tensors import Matrix, Tensor, size_of

#: kind of operation → (what it keeps, why its backward pass needs that)
RULES: dict[str, tuple[str, str]] = {
    "linear": ("its input", "the weight gradient is inputᵀ · output gradient"),
    "frozen linear": ("nothing", "no weight gradient is asked for, and the input gradient needs the weights alone"),
    "layernorm": ("its input, a mean and a deviation per row", "the gradient is written with the normalised input"),
    "rmsnorm": ("its input and a deviation per row", "the gradient is written with the normalised input"),
    "gelu": ("its input", "the slope of GeLU is taken at the input"),
    "silu": ("its input", "the slope of SiLU is taken at the input"),
    "swiglu": ("its two inputs", "a fused kernel works SiLU and the product out again from gate and up"),
    "softmax": ("its output", "the gradient is p ⊙ (p̄ − ⟨p, p̄⟩): the output p is all it needs"),
    "log-softmax": ("its output", "the gradient needs softmax = exp(output)"),
    "dropout": ("its mask, one byte per element", "the gradient passes where the mask is 1"),
    "product": ("both factors", "the gradient of each factor is a product with the other"),
    "attention": ("Q, K, V, its output and one log-sum-exp per row", "the scores are rebuilt from them block by block"),
    "add": ("nothing", "the gradient goes to both terms unchanged"),
    "scale": ("nothing", "the gradient is multiplied by the same plain number"),
    "copy": ("nothing", "the gradient is copied or converted back"),
    "nll": ("the log-probabilities and the targets", "the gradient lands on the target's entry of each row"),
    "embedding": ("the token indices", "the gradient of a row is summed over the places where its token stands"),
    "held": ("what the program still refers to", "a name in the program keeps a tensor alive"),
    "rotary": ("the cosine and sine tables", "the gradient is rotated back"),
}


@dataclass(frozen=True)
class Operation:
    """One operation of the forward pass, with what it reads, makes and keeps (``role → tensor name``).

    ``alias`` marks an operation whose gradient is the same storage for its inputs as for its output (an addition).
    ``differentiable`` are the inputs that get a gradient. ``matrices`` are its parameters; ``shared`` ones are counted
    elsewhere (a tied output layer) but get a gradient from here too.
    """

    name: str
    kind: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    keeps: tuple[tuple[str, str], ...] = ()
    matrices: tuple[Matrix, ...] = ()
    differentiable: tuple[str, ...] = ()
    alias: bool = False
    shared: tuple[Matrix, ...] = ()

    @property
    def why(self) -> str:
        """Why its backward pass needs what it keeps."""
        return RULES[self.kind][1]


@dataclass(frozen=True)
class Block:
    """Operations from one input tensor to one output: a layer, an embedding, a head with its loss.

    ``recomputed`` names the operations that are run again in the backward pass instead of keeping anything; they keep
    only what enters them from outside.
    """

    name: str
    dims: Mapping[str, int]
    operations: tuple[Operation, ...]
    tensors: Mapping[str, Tensor]
    input: str
    output: str
    recomputed: frozenset[str] = field(default=frozenset())

    @cached_property
    def needed_by(self) -> dict[str, tuple[str, ...]]:
        """Tensor name → the ``operation.role`` places that need it in the backward pass, recomputed ones too."""
        places: dict[str, list[str]] = {}
        for op in self.operations:
            for role, name in op.keeps:
                places.setdefault(name, []).append(f"{op.name}.{role}")
        return {name: tuple(found) for name, found in places.items()}

    @cached_property
    def region_inputs(self) -> tuple[str, ...]:
        """What the recomputed operations read that is made outside them, in order of use."""
        region = [op for op in self.operations if op.name in self.recomputed]
        made = {name for op in region for name in op.writes}
        return tuple(dict.fromkeys(name for op in region for name in op.reads if name not in made))

    @cached_property
    def everything(self) -> tuple[Tensor, ...]:
        """All that is held for the backward pass at the end of the forward pass, extras included, in forward order."""
        held: dict[str, list[str]] = {}
        for op in self.operations:
            if op.name in self.recomputed:
                for name in op.reads:
                    if name in self.region_inputs:
                        held.setdefault(name, []).append("checkpoint.input")
            else:
                for role, name in op.keeps:
                    held.setdefault(name, []).append(f"{op.name}.{role}")
        return tuple(
            replace(self.tensors[name], needed_by=tuple(dict.fromkeys(places))) for name, places in held.items()
        )

    @property
    def kept(self) -> tuple[Tensor, ...]:
        """The tensors that the formulas count."""
        return tuple(tensor for tensor in self.everything if not tensor.extra)

    @property
    def extras(self) -> tuple[Tensor, ...]:
        """The small ones that the formulas leave out: statistics, log-sum-exp."""
        return tuple(tensor for tensor in self.everything if tensor.extra)

    @property
    def kept_bytes(self) -> int:
        """Sum over ``kept``."""
        return sum(tensor.nbytes for tensor in self.kept)

    @property
    def extra_bytes(self) -> int:
        """Sum over ``extras``."""
        return sum(tensor.nbytes for tensor in self.extras)

    def walk(self) -> list[tuple[Operation, tuple[Tensor, ...]]]:
        """Each operation in forward order, with the tensors that are kept from then on because of it (extras too)."""
        held = {tensor.name: tensor for tensor in self.everything}
        steps = []
        for op in self.operations:
            again = op.name in self.recomputed
            names = op.reads if again else [name for _, name in op.keeps]
            new = [name for name in dict.fromkeys(names) if name in held and (not again or name in self.region_inputs)]
            steps.append((op, tuple(held.pop(name) for name in new)))
        return steps

    def units(self, tensor: Tensor) -> tuple[float, str]:
        """A tensor in the unit of its part: ``(2.0, "sbh")``, or ``(1.0, "as²b")`` in the attention core."""
        if tensor.part == "core":
            return tensor.nbytes / self.as2b, "as²b"
        return tensor.nbytes / self.sbh, "sbh"

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The parameters of the block, array by array, in forward order."""
        return tuple(matrix for op in self.operations for matrix in op.matrices)

    @property
    def parameters(self) -> int:
        """Sum over ``matrices``."""
        return sum(matrix.elements for matrix in self.matrices)

    @property
    def sbh(self) -> int:
        """The unit s·b·h of this block: a 16-bit tensor with one value per token and hidden unit takes 2 of it."""
        return self.dims["s"] * self.dims["b"] * self.dims["h"]

    @property
    def as2b(self) -> int:
        """The unit a·s²·b: one score matrix per head and sequence, in elements."""
        return self.dims["a"] * self.dims["s"] ** 2 * self.dims["b"]

    def recompute(self, names: Iterable[str] | None = None) -> "Block":
        """The same block with the named operations (all by default) run again in the backward pass.

        Raises ``ValueError`` for a name that is none of its operations.
        """
        all_names = [op.name for op in self.operations]
        chosen = frozenset(all_names if names is None else names)
        unknown = sorted(chosen - set(all_names))
        if unknown:
            raise ValueError(f"{self.name} has no operation {', '.join(unknown)}; it has {', '.join(all_names)}")
        return replace(self, recomputed=chosen)


class Builder:
    """Writes a block operation by operation; each method is the rule of one kind of operation.

    Shapes are expressions such as ``"b s 4h/t"``. Every method returns the name of the tensor it makes.
    """

    def __init__(self, name: str, dims: Mapping[str, int], part: str = "model") -> None:
        self.name = name
        self.dims = dict(dims)
        self.tensors: dict[str, Tensor] = {}
        self.operations: list[Operation] = []
        self.part = part
        self.input = ""

    def tensor(self, name: str, shape: str, format: str = "bf16", extra: bool = False, part: str | None = None) -> str:
        if name in self.tensors:
            raise ValueError(f"{self.name} makes two tensors called {name!r}: give the second one a name of its own")
        axes = self._axes(shape)
        sizes = tuple(size_of(axis, self.dims) for axis in axes)
        self.tensors[name] = Tensor(name, axes, sizes, format, part or self.part, extra)
        return name

    def matrix(self, name: str, shape: str, kind: str = "weight", frozen: bool = False) -> Matrix:
        axes = self._axes(shape)
        return Matrix(name, axes, tuple(size_of(axis, self.dims) for axis in axes), kind, frozen)

    def block(self, output: str) -> Block:
        return Block(self.name, self.dims, tuple(self.operations), self.tensors, self.input, output)

    def _axes(self, shape: str) -> tuple[str, ...]:
        axes = shape.split()
        if self.dims.get("t") == 1:  # "h/t" on one GPU reads as "h"
            axes = [axis.removesuffix("/t") for axis in axes]
        return tuple(axes)

    def _shape(self, name: str) -> str:
        return " ".join(self.tensors[name].shape)

    def operation(
        self,
        name: str,
        kind: str,
        reads: tuple[str, ...],
        writes: tuple[str, ...],
        keeps: Mapping[str, str] | None = None,
        matrices: tuple[Matrix, ...] = (),
        differentiable: tuple[str, ...] | None = None,
        alias: bool = False,
        shared: tuple[Matrix, ...] = (),
    ) -> str:
        gets = reads if differentiable is None else differentiable
        self.operations.append(
            Operation(name, kind, reads, writes, tuple((keeps or {}).items()), matrices, gets, alias, shared)
        )
        return writes[0] if writes else ""

    def linear(
        self,
        name: str,
        x: str,
        out: str,
        shape: str,
        weight: str,
        bias: str | None,
        *,
        frozen: bool = False,
        rank: str | None = None,
        keep: str | None = None,
    ) -> str:
        """``y = xW + bias``. Keeps ``x`` (or ``keep``, the piece of it that a GPU keeps under sequence parallelism).

        ``frozen`` keeps nothing. With ``rank`` an adapter xAB is added beside it: A keeps x, B keeps xA.
        """
        matrices = [self.matrix(f"{name}.weight", weight, "weight", frozen)]
        if bias:
            matrices.append(self.matrix(f"{name}.bias", bias, "bias", frozen))
        keeps = {} if frozen else {"input": keep or x}
        base = self.tensor(f"{out}, frozen" if rank else out, shape)
        self.operation(name, "frozen linear" if frozen else "linear", (x,), (base,), keeps, tuple(matrices))
        if not rank:
            return base
        rows, columns = weight.split()
        low = self.tensor(f"{name}.low rank", " ".join([*self._shape(x).split()[:-1], rank]))
        down = (self.matrix(f"{name}.lora_a.weight", f"{rows} {rank}"),)
        self.operation(f"{name}.lora_a", "linear", (x,), (low,), {"input": x}, down)
        change = self.tensor(f"{name}.change", shape)
        up = (self.matrix(f"{name}.lora_b.weight", f"{rank} {columns}"),)
        self.operation(f"{name}.lora_b", "linear", (low,), (change,), {"input": low}, up)
        return self.add(f"{name}.add", base, change, out)

    def layernorm(self, name: str, x: str, out: str, *, statistics: str, frozen: bool = False) -> str:
        rows = " ".join([*self._shape(x).split()[:-1], "1"])
        mean = self.tensor(f"{name}.mean", rows, statistics, extra=True)
        rstd = self.tensor(f"{name}.rstd", rows, statistics, extra=True)
        matrices = tuple(self.matrix(f"{name}.{piece}", "h", "norm", frozen) for piece in ("weight", "bias"))
        y = self.tensor(out, self._shape(x))
        keeps = {"input": x, "mean": mean, "rstd": rstd}
        self.operation(name, "layernorm", (x,), (y, mean, rstd), keeps, matrices, (x,))
        return y

    def rmsnorm(self, name: str, x: str, out: str, *, norm: str, frozen: bool = False) -> str:
        """RMSNorm in one of the three ways found in practice.

        ``fused``: one kernel, keeps its 16-bit input. ``by hand``: converts to fp32, normalises, converts back and
        scales; keeps the fp32 input and the normalised 16-bit tensor. ``composite``: what PyTorch's own function does
        on a CPU; the scaling is in fp32 too, so two fp32 tensors are kept.
        """
        shape = self._shape(x)
        rows = " ".join([*shape.split()[:-1], "1"])
        weight = (self.matrix(f"{name}.weight", "h", "norm", frozen),)
        rstd = self.tensor(f"{name}.rstd", rows, "fp32", extra=True)
        if norm == "fused":
            y = self.tensor(out, shape)
            return self.operation(name, "rmsnorm", (x,), (y, rstd), {"input": x, "rstd": rstd}, weight, (x,))
        if norm not in ("by hand", "composite"):
            raise ValueError(f"norm is 'fused', 'by hand' or 'composite', not {norm!r}")
        wide = self.tensor(f"{name}.input in fp32", shape, "fp32")
        normal = self.tensor(f"{name}.normalised", shape, "bf16" if norm == "by hand" else "fp32")
        y = self.tensor(out, shape)
        keeps = {
            "square.input": wide,
            "rsqrt.output": rstd,
            "product1.left": wide,
            "product1.right": rstd,
        }
        # A frozen scale needs no gradient, so the tensor that it multiplies is not kept.
        if not frozen:
            keeps["product2.left"] = normal
        return self.operation(name, "rmsnorm", (x,), (y, wide, normal, rstd), keeps, weight, (x,))

    def pointwise(self, name: str, kind: str, x: str, out: str) -> str:
        """GeLU or SiLU: keeps its input."""
        return self.operation(name, kind, (x,), (self.tensor(out, self._shape(x)),), {"input": x})

    def swiglu(self, name: str, gate: str, up: str, out: str) -> str:
        """SiLU(gate) ⊙ up in one kernel."""
        y = self.tensor(out, self._shape(up))
        return self.operation(name, "swiglu", (gate, up), (y,), {"gate": gate, "up": up})

    def softmax(self, name: str, x: str, out: str, format: str = "bf16") -> str:
        y = self.tensor(out, self._shape(x), format)
        return self.operation(name, "softmax", (x,), (y,), {"output": y})

    def dropout(self, name: str, x: str, out: str) -> str:
        mask = self.tensor(f"{name}.mask", self._shape(x), "mask")
        y = self.tensor(out, self._shape(x))
        return self.operation(name, "dropout", (x,), (y, mask), {"mask": mask}, differentiable=(x,))

    def product(self, name: str, left: str, right: str, out: str, shape: str) -> str:
        """A product of two activations (matrix or element by element): keeps both."""
        y = self.tensor(out, shape)
        return self.operation(name, "product", (left, right), (y,), {"left": left, "right": right})

    def scale(self, name: str, x: str, out: str) -> str:
        return self.operation(name, "scale", (x,), (self.tensor(out, self._shape(x)),))

    def copy(
        self, name: str, x: str, out: str, shape: str | None = None, format: str = "bf16", alias: bool = False
    ) -> str:
        """Another layout or another format: a new tensor, and nothing kept."""
        return self.operation(name, "copy", (x,), (self.tensor(out, shape or self._shape(x), format),), alias=alias)

    def attention(self, name: str, q: str, k: str, v: str, out: str, lse_shape: str) -> str:
        lse = self.tensor(f"{name}.logsumexp", lse_shape, "fp32", extra=True)
        y = self.tensor(out, self._shape(q))
        keeps = {"query": q, "key": k, "value": v, "output": y, "logsumexp": lse}
        return self.operation(name, "attention", (q, k, v), (y, lse), keeps)

    def add(self, name: str, left: str, right: str, out: str) -> str:
        return self.operation(name, "add", (left, right), (self.tensor(out, self._shape(left)),), alias=True)
