"""Questions to check oneself at the end of the lesson, and questions from interviews, with their answers."""

from trainmem.review import quantities as q
from trainmem.review.records import Question

CHECK_YOURSELF: dict[str, Question] = {
    question.name: question
    for question in (
        Question(
            name="parameters-at-1024",
            section="Parameters",
            question="A GPT layer (biases, MLP of width 4h) has h = 1024. Count its parameters to the last one.",
            answer="12h² is 12,582,912 and 13h is 13,312; together **[[value:,]]**.",
            value=lambda: q.gpt_layer(1024, 1, 1024, 16).parameters,
        ),
        Question(
            name="gpus-for-70b",
            section="Model states",
            question="You own GPUs with 80 GB each. How many do you need before the model states of a 70B model fit, "
            "spread over all of them without overlap (mixed-precision Adam)?",
            answer="16 bytes times 70·10⁹ is 1,120 GB, and 1,120 / 80 is **[[value]]** without a remainder. "
            "Those GPUs would be full to the last byte: activations and buffers need more.",
            value=lambda: q.gpus_for_states(70e9),
        ),
        Question(
            name="ten-that-stay",
            section="What changes the count",
            question="Tensor parallelism alone leaves [[value:.0f]] of the 34 sbh whole on every GPU. Name the "
            "tensors, say why they stay, and what splits them after all.",
            answer="Both LayerNorm inputs (4), the inputs of the QKV and of the first MLP projection (4), and the "
            "masks of the two dropouts on the residual branch (2). Each GPU works on its heads and its columns of "
            "the MLP, but these six tensors stand *between* such regions, where every GPU needs the whole hidden "
            "vector. Sequence parallelism gives each GPU a part of the tokens there.",
            value=lambda: q.unsplit_sbh(),
        ),
        Question(
            name="without-dropout",
            section="Activations of one layer",
            question="Take all three dropouts out of the GPT layer (no FlashAttention). What does it keep now?",
            answer="**[[coefficients(dropout=False)[0]]]·sbh + [[coefficients(dropout=False)[1]]]·a·s²·b.** Three "
            "masks go: 2·sbh and a·s²·b. The dropout's output goes as well (another 2·a·s²·b), because the product "
            "with V now reads the softmax output itself, and the softmax keeps that one already.",
            value=lambda: q.coefficients(dropout=False)[0],
        ),
        Question(
            name="selective-against-flash",
            section="What changes the count",
            question="Selective recomputation saves as much memory as FlashAttention, near enough. "
            "How so, and why does it cost so little?",
            answer="Both leave out every tensor of size s × s and keep 34·sbh. The core can be had again from Q, K "
            "and V with two batched products, 4bs²h FLOPs, while the layer's large products take 72bsh² over a "
            "step. For GPT-3 that is [[value:.1%]] more FLOPs.",
            value=lambda: q.extra_flops(2048, 12288, 96),
        ),
        Question(
            name="every-sixth-layer",
            section="A checkpoint every k layers",
            question="24 layers with FlashAttention, c = 2 sbh and A = 34 sbh. Compare the peak of a checkpoint at "
            "every sixth layer with that of one at every layer.",
            answer="Every sixth: 24/6 · 2 + 6 · 34 = **[[value:.0f]] sbh**. Every layer: 24 · 2 + 34 = "
            "**[[M(24, 1):.0f]] sbh**. The rebuilt segment is the large part, so short segments win; "
            "√(Lc/A) is [[k_star(24):.1f]].",
            value=lambda: q.M(24, 6),
        ),
    )
}

INTERVIEW: dict[str, Question] = {
    question.name: question
    for question in (
        Question(
            name="memory-for-7b",
            section="Model states",
            question="“You want to train a 7B model with Adam. Talk me through the memory.”",
            answer="Start with what does not depend on the data: 16 bytes a parameter, [[value / GB:.0f]] GB for a "
            "round seven billion. No 80 GB GPU holds that, so the states have to be shared: ZeRO, FSDP or tensor "
            "parallelism. Then ask for s, b and the layer's type, and add activations and the loss.",
            value=lambda: q.states_bytes(7e9),
        ),
        Question(
            name="price-of-checkpointing",
            section="A checkpoint every k layers",
            question="“What do you pay for activation checkpointing, and what do you get?”",
            answer="You pay a second forward pass: 8Ψ instead of 6Ψ FLOPs a token, [[value:.0%]] more. You keep "
            "2·sbh a layer in place of 34·sbh or more, and one layer (or segment) that is being rebuilt.",
            value=lambda: q.full_extra_flops(),
        ),
        Question(
            name="flash-and-memory",
            section="What changes the count",
            question="“FlashAttention is known for speed. Does it save memory too?”",
            answer="Yes: no s × s tensor is ever written to the GPU's memory. The backward pass works the scores out "
            "again, block by block, from Q, K, V, the output and one log-sum-exp a row. The quadratic term of the "
            "activations is gone.",
        ),
        Question(
            name="when-did-it-fail",
            section="Where it shows up",
            question="“A run died with *out of memory*. What do you ask first?”",
            answer="When. In the first step: the plan was wrong (the loss, the micro-batch, checkpointing not "
            "switched on, the wrong layer's formula). In the second: the optimizer's states appeared with the first "
            "update. Hours later: an unusually long batch, fragmentation, or something that grows, for instance a "
            "list of losses that holds their graphs.",
        ),
    )
}
