"""The recall cards: one fact each, in the order of the lesson.

Names are kept for ever: a reader's history hangs on them.
"""

from trainmem.review import quantities as q
from trainmem.review.records import Question

_ALL = (
    Question(
        name="seven-b-on-one-gpu",
        section="Why it matters",
        question="Does a 7B model, trained with mixed-precision Adam, fit on one 80 GB GPU before any activation?",
        answer="No. Its model states alone take [[value / GB:.0f]] GB.",
        value=lambda: q.states_bytes(7e9),
    ),
    Question(
        name="weather-tokens",
        section="Why it matters",
        question="A weather field on a quarter-degree grid has 721 × 1440 points. "
        "About how many tokens is that with 8 × 8 patches?",
        answer="About [[value:,.0f]] tokens ([[grid_points:,]] points, 64 in a patch).",
        value=lambda: q.grid_points / 64,
    ),
    Question(
        name="long-or-many",
        section="Predict first",
        question="You double s and halve b. What happens to a layer's activations without FlashAttention?",
        answer="34·sbh stays (as many tokens as before), 5·a·s²·b doubles (each token meets twice as many). "
        "So the memory grows, by up to [[value:.0f]] times.",
        value=lambda: q.gpt_layer(32, 1, 32, 4).as2b / q.gpt_layer(16, 2, 32, 4).as2b,
    ),
    Question(
        name="linear-layer-keeps",
        section="One linear layer",
        question="What does a linear layer y = xW keep for its backward pass, and what not?",
        answer="Its input x, because the weight gradient is xᵀ times the gradient of y. Not its output y.",
    ),
    Question(
        name="linear-layer-bytes",
        section="One linear layer",
        question="A linear layer, 1024 × 1024, sees 4,096 tokens in bf16. How much does it keep? "
        "And at twice the tokens?",
        answer="2 · 4096 · 1024 bytes = [[value / MB:.1f]] MB; at twice the tokens twice that. "
        "Its model states stay at [[16 * toy.parameters / MB:.1f]] MB.",
        value=lambda: q.toy.kept_bytes,
    ),
    Question(
        name="softmax-or-gelu",
        section="What each operation keeps",
        question="GeLU keeps its input. What does softmax keep, and why is that enough?",
        answer="Its output p. The gradient is p ⊙ (p̄ − ⟨p, p̄⟩), which needs p and the incoming gradient p̄ alone.",
    ),
    Question(
        name="residual-add-keeps",
        section="What each operation keeps",
        question="What does a residual addition keep? What does a product of two activations keep?",
        answer="The addition nothing: its gradient goes on unchanged. The product both factors.",
    ),
    Question(
        name="dropout-mask",
        section="What each operation keeps",
        question="How large is the mask that dropout keeps?",
        answer="[[value]] byte an element on a GPU, half of a bf16 activation: a mask is stored as bytes, not bits.",
        value=lambda: q.gpt_layer(16, 1, 32, 4).tensors["dropout1.mask"].nbytes // (16 * 32),
    ),
    Question(
        name="when-is-the-peak",
        section="Memory over one step",
        question="When in a plain training step is the memory highest, and why then?",
        answer="At the turn from the forward to the backward pass. All layers have stored their activations, "
        "the logits have just joined them, and nothing has been freed yet.",
    ),
    Question(
        name="late-gradients",
        section="Memory over one step",
        question="With full checkpointing, and gradients that are allocated as they come, the peak is at another "
        "moment. Which?",
        answer="Near the end of the backward pass: hardly any activations were there to be freed, and by then nearly "
        "all gradients have arrived.",
    ),
    Question(
        name="unit-sbh",
        section="Notation",
        question="What is one sbh? How many of them does a bf16 tensor with a hidden vector for each token take?",
        answer="s · b · h bytes. Such a tensor takes [[value]] sbh.",
        value=lambda: q.gpt_layer(16, 1, 32, 4).tensors["layer input"].nbytes // (16 * 32),
    ),
    Question(
        name="gb-or-gib",
        section="Notation",
        question="How far apart are GB and GiB?",
        answer="GB is 10⁹ bytes, GiB is 2³⁰: [[value:.1%]] more.",
        value=lambda: q.GIB / q.GB - 1,
    ),
    Question(
        name="parameters-of-a-gpt-layer",
        section="Parameters",
        question="How many parameters has a GPT layer with biases and an MLP of width 4h?",
        answer="12h² + 13h: attention 4h² + 4h, the MLP 8h² + 5h, two LayerNorms 4h.",
    ),
    Question(
        name="parameters-of-a-llama-layer",
        section="Parameters",
        question="And a Llama-style layer with an MLP of width f and g query heads to a key/value head?",
        answer="(2 + 2/g)h² + 3hf + 2h: no biases, three MLP matrices, two RMSNorms with a scale each.",
    ),
    Question(
        name="twelve-is-not-for-all",
        section="Parameters",
        question="Is a layer of Llama 2 70B 12h²?",
        answer="No: [[value:.2f]] h², with few key/value heads and a wide MLP.",
        value=lambda: q.MODELS["llama2-70b"].layer(1).parameters / q.MODELS["llama2-70b"].h ** 2,
    ),
    Question(
        name="share-of-the-layers",
        section="Parameters",
        question="For the 1.3B example, what part of all parameters is 12Lh²? What is most of the rest?",
        answer="[[value:.1%]]. Most of the rest is the token embedding.",
        value=lambda: 12 * q.example.model.L * q.example.model.h**2 / q.example.model.parameters,
    ),
    Question(
        name="bytes-per-parameter",
        section="Model states",
        question="How many bytes a parameter does mixed-precision Adam take, item by item?",
        answer="[[value:.0f]]: bf16 weights 2, bf16 gradients 2, fp32 master weights 4, two fp32 moments 4 + 4.",
        value=lambda: q.states_bytes(1),
    ),
    Question(
        name="fp32-gradient-buffers",
        section="Model states",
        question="How many bytes a parameter where gradients are summed up in an fp32 buffer, as in Megatron-LM?",
        answer="[[value:.0f]]: 2 + 4 + 12.",
        value=lambda: q.states_bytes(1, "megatron"),
    ),
    Question(
        name="zero-stages",
        section="Model states",
        question="Bytes a parameter on each of d GPUs under ZeRO-1, -2 and -3?",
        answer="4 + 12/d, 2 + 14/d, 16/d: first the optimizer is shared, then the gradients, then the weights.",
    ),
    Question(
        name="activations-of-a-gpt-layer",
        section="Activations of one layer",
        question="How much does a GPT layer keep without FlashAttention (dropout, GeLU, 16-bit)?",
        answer="sbh(34 + 5as/h) bytes, which is 34·sbh + 5·a·s²·b.",
    ),
    Question(
        name="where-34-comes-from",
        section="Activations of one layer",
        question="How do the 34 sbh split between attention, MLP and norms?",
        answer="Attention 11, MLP 19, the inputs of the two LayerNorms 4.",
    ),
    Question(
        name="why-s-squared",
        section="Activations of one layer",
        question="Why does the attention core grow with s², when all else grows with s?",
        answer="A score stands for a *pair* of tokens, everything else for one token. "
        "Each head has an s × s matrix for each sequence.",
    ),
    Question(
        name="core-of-gpt3",
        section="Activations of one layer",
        question="What part of a GPT-3 layer's activations is the attention core (s = 2048)?",
        answer="5as/h is 80, and 80/114 is [[value:.0%]].",
        value=lambda: q.core_share(q.gpt3_layer),
    ),
    Question(
        name="what-flash-removes",
        section="What changes the count",
        question="Which tensors does FlashAttention spare you, and what small one does it keep in their place?",
        answer="Every s × s tensor: 5·a·s²·b bytes. It keeps one fp32 log-sum-exp for each row and head, 4·a·s·b "
        "bytes.",
    ),
    Question(
        name="what-full-checkpointing-does",
        section="What changes the count",
        question="Full checkpointing: what is kept, and what does it cost?",
        answer="2·sbh a layer (its input), and one layer being rebuilt. It costs one more forward pass, "
        "[[value:.0%]] more FLOPs.",
        value=lambda: q.full_extra_flops(),
    ),
    Question(
        name="tensor-parallel-count",
        section="What changes the count",
        question="What does a layer keep under tensor parallelism of degree t, alone and with sequence parallelism?",
        answer="Alone sbh(10 + 24/t + 5as/(ht)); with sequence parallelism sbh(34 + 5as/h)/t.",
    ),
    Question(
        name="pipeline-first-stage",
        section="What changes the count",
        question="Does a pipeline of p stages (1F1B) cut the activations of its first stage to L/p layers?",
        answer="No. It has L/p layers, but p micro-batches in flight: as much as L layers of one.",
    ),
    Question(
        name="m-of-k",
        section="A checkpoint every k layers",
        question="The peak with a checkpoint every k layers, and the best k?",
        answer="M(k) = (L/k)·c + k·A. It is lowest at k = √(Lc/A), where it is 2√(LcA).",
    ),
    Question(
        name="interval-at-80-layers",
        section="A checkpoint every k layers",
        question="80 layers, c = 2, A = 34 (sbh): which k, and what peak?",
        answer="k = 2: 40 · 2 + 2 · 34 = [[value:.0f]] sbh (k = 1: [[M(80, 1):.0f]]).",
        value=lambda: q.simulated_peak(80, 2),
    ),
    Question(
        name="square-root-of-l",
        section="A checkpoint every k layers",
        question="When is the best k about √L, and why is it smaller in a transformer?",
        answer="When a checkpoint is as large as a layer's activations (c = A). A transformer's layer input is only "
        "2 of 34 sbh, so that √(Lc/A) is √(L/17).",
    ),
    Question(
        name="logits-bytes",
        section="The logits and the loss",
        question="How much do the logits take, as the simple sum counts them?",
        answer="4·s·b·V bytes (fp32). For the 1.3B example [[value / GB:.1f]] GB.",
        value=lambda: q.example.logits,
    ),
    Question(
        name="loss-peak-bytes",
        section="The logits and the loss",
        question="And the loss's own peak, run as ordinary operations in fp32?",
        answer="[[value:.0f]] bytes a logit: log-probabilities, their gradient, the gradient of the logits.",
        value=lambda: q.loss_bytes(),
    ),
    Question(
        name="order-of-the-ladder",
        section="Does it fit",
        question="The six rungs, from cheap to dear?",
        answer="FlashAttention or selective recomputation; ZeRO-1, -2; a smaller micro-batch; full checkpointing or "
        "ZeRO-3; tensor and sequence, then pipeline parallelism; offload.",
    ),
    Question(
        name="how-much-to-keep-free",
        section="Does it fit",
        question="How much of a GPU should a plan leave free, and what for?",
        answer="10 to 20%: temporary and communication buffers, and fragmentation. In extreme cases runs failed with "
        "more than 30% free.",
    ),
    Question(
        name="total-of-the-example",
        section="Worked example",
        question="The 1.3B example (s = 2048, b = 8) needs how much without FlashAttention, and how much with it?",
        answer="[[example.total() / GB:.0f]] GB without, [[value / GB:.1f]] GB with it.",
        value=lambda: q.example.total("flash"),
    ),
    Question(
        name="largest-micro-batch",
        section="In NumPy",
        question="With full checkpointing, how many sequences of the 1.3B example fit on 80 GB with 15% free? "
        "What is the largest part then?",
        answer="[[value]] (with FlashAttention alone [[example.largest_micro_batch('flash')]]). The logits.",
        value=lambda: q.example.largest_micro_batch("full"),
    ),
    Question(
        name="count-by-storage",
        section="In PyTorch",
        question="Saved-tensor hooks report Q, K and V as three tensors. Why may their bytes be fewer than the sum?",
        answer="Views share one storage, and one tensor may be saved by several operations. Count each storage once.",
    ),
    Question(
        name="attention-inputs",
        section="In PyTorch",
        question="scaled_dot_product_attention keeps s × s matrices although you hoped for the fused path. "
        "What do you look at first?",
        answer="The shapes: it wants (b, a, s, d). With three dimensions PyTorch takes the plain path on a CPU.",
    ),
    Question(
        name="count-of-a-llama-layer",
        section="Llama-style layers",
        question="What does a Llama-style layer keep with fused attention?",
        answer="sbh(12 + 4/g + 8f/h); 6f/h in place of 8f/h with a fused SwiGLU. LLaMA 7B: [[value]] sbh.",
        value=lambda: q.sbh(q.llama7.layer(4096, 1)),
    ),
    Question(
        name="lora-activations",
        section="Where it shows up",
        question="With LoRA the model states shrink to about 2 bytes a frozen parameter. And the activations?",
        answer="They stay roughly as they are. A wholly frozen linear layer keeps no input, but one with an adapter "
        "still does, and norms, GeLU and attention keep theirs.",
    ),
    Question(
        name="zero-and-activations",
        section="Common mistakes",
        question="Does ZeRO or data parallelism make the activations of a GPU smaller?",
        answer="No. A GPU sends its micro-batch through complete layers all the same. Only model states are divided.",
    ),
)

CARDS: dict[str, Question] = {card.name: card for card in _ALL}
