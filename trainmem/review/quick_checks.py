"""The quick checks of the lesson."""

from trainmem.review import quantities as q
from trainmem.review.records import Choice, QuickCheck

_ALL = (
    QuickCheck(
        name="double-the-micro-batch",
        section="Memory over one step",
        question="A run uses a micro-batch of b sequences. You change it to 2b and leave all else alone. "
        "Which part of the memory doubles?",
        choices=(
            Choice(
                "Only the model states.",
                "Weights, gradients and optimizer states are as many as there are parameters. "
                "A parameter does not know how many sequences pass through it.",
            ),
            Choice(
                "Only the activations (the logits among them).",
                "Everything that is kept for the backward pass has one row for each token, and there are now twice as "
                "many tokens. The model states stay where they were.",
                right=True,
            ),
            Choice(
                "Both.",
                "If it were so, a larger micro-batch would need a larger optimizer. "
                "The model states belong to the parameters, and these did not change.",
            ),
            Choice(
                "Neither: gradients are averaged over the micro-batch.",
                "The average makes the *gradient* no larger. But to compute it, the backward pass needs the "
                "activations of every sequence, all at the same time.",
            ),
        ),
        value=lambda: q.toy_doubled.kept_bytes / q.toy.kept_bytes,
    ),
    QuickCheck(
        name="states-of-13b",
        section="Model states",
        question="A model of 13 billion parameters is trained on a single GPU with mixed-precision Adam. "
        "What do its model states take?",
        choices=(
            Choice(
                "[[states_bytes(13e9, 'inference') / GB:.0f]] GB",
                "That is 2 bytes a parameter: the bf16 weights alone. It is what *inference* needs.",
            ),
            Choice(
                "[[4 * 13e9 / GB:.0f]] GB",
                "That is 4 bytes a parameter: bf16 weights and bf16 gradients. The optimizer's 12 bytes are missing.",
            ),
            Choice(
                "[[12 * 13e9 / GB:.0f]] GB",
                "That is 12 bytes a parameter: the optimizer's part alone (master weights and two moments). "
                "The bf16 weights and gradients come on top.",
            ),
            Choice(
                "[[value / GB:.0f]] GB",
                "2 + 2 + 12 = 16 bytes for each of 13 billion parameters. More than two 80 GB GPUs, "
                "and no activation is counted yet.",
                right=True,
            ),
        ),
        value=lambda: q.states_bytes(13e9),
    ),
    QuickCheck(
        name="where-the-core-overtakes",
        section="Activations of one layer",
        question="A GPT layer has h = 4096 and a = 32, and no FlashAttention. At which sequence length does its "
        "attention core (5·a·s²·b) begin to take more than all the rest (34·sbh)?",
        choices=(
            Choice(
                "At about [[34 * 4096 / (5 * 32) / 5:.0f]] tokens",
                "There the core is a fifth of the rest. Perhaps the 5 of 5·a·s²·b was counted twice.",
            ),
            Choice(
                "At [[value]] tokens",
                "Divide both by s·b: 5·a·s against 34·h, so s > 34h/(5a) = [[34 * 4096 / (5 * 32)]]. "
                "That is a short text. Almost every training run lies beyond it.",
                right=True,
            ),
            Choice(
                "At 4,096 tokens, where s = h",
                "At s = h the core is already [[5 * 32 * 4096 / (34 * 4096):.1f]] times the rest: each of the 32 heads "
                "has a matrix of its own, and the core keeps 5 bytes an entry.",
            ),
            Choice(
                "Never: h is in the thousands and a is only 32",
                "The core grows with s² and the rest with s. However small its factor, it wins in the end; here early.",
            ),
        ),
        value=lambda: q.crossing(4096, 32),
    ),
    QuickCheck(
        name="what-to-recompute",
        section="A checkpoint every k layers",
        question="Your activations are a little too large, and FlashAttention is not available. "
        "You may recompute *one* part of every layer. Which one is the best bargain?",
        choices=(
            Choice(
                "The MLP",
                "It frees 17 sbh (its input has to stay), but it holds two thirds of the layer's large matrix "
                "products: dear to run again.",
            ),
            Choice(
                "The query, key and value projections",
                "Three h × h products for 6 sbh: much work, little memory.",
            ),
            Choice(
                "The attention core, from the scores to the dropped weights",
                "It holds all of 5·a·s²·b ([[core_share(gpt3_layer):.0%]] of a GPT-3 layer's memory) and needs two "
                "matrix products that are small beside the rest: [[value:.1%]] more FLOPs a step for GPT-3. "
                "This is selective recomputation.",
                right=True,
            ),
            Choice(
                "The LayerNorms",
                "They are the cheapest to run again, but what you get back is little: their outputs, 4 of the 34 sbh.",
            ),
        ),
        value=lambda: q.extra_flops(2048, 12288, 96),
    ),
    QuickCheck(
        name="bytes-at-the-loss",
        section="The logits and the loss",
        question="The loss is computed in fp32 by an ordinary sequence of operations (no fused kernel). "
        "How many bytes does it hold for each logit at its highest moment?",
        choices=(
            Choice(
                "2",
                "The output layer writes bf16 logits, 2 bytes each. The loss then converts them.",
            ),
            Choice(
                "4",
                "That is what *stays* from the forward to the backward pass: the log-probabilities in fp32. "
                "It is a fair count for a sum, but not for the loss's own peak.",
            ),
            Choice(
                "[[value:.0f]]",
                "The fp32 log-probabilities, their gradient, and the gradient of the logits: three tensors of 4 bytes "
                "a logit are there at the same time.",
                right=True,
            ),
        ),
        value=lambda: q.loss_bytes(),
    ),
    QuickCheck(
        name="cheapest-fix-of-the-example",
        section="Does it fit",
        question="The 1.3B example asks for [[example.total() / GB:.0f]] GB: [[example.states / GB:.1f]] GB of states, "
        "[[example.activations() / GB:.1f]] GB of activations (no FlashAttention), [[example.logits / GB:.1f]] GB of "
        "logits. There is one GPU with 80 GB. Which single change is the cheapest that makes it fit?",
        choices=(
            Choice(
                "FlashAttention",
                "It takes the attention core away and costs no time: "
                "[[value / GB:.1f]] GB. Nothing else on the ladder is that cheap.",
                right=True,
            ),
            Choice(
                "ZeRO-2",
                "With a single GPU there is nobody to share the states with. And the states are the small part here.",
            ),
            Choice(
                "Full checkpointing",
                "It would fit, at [[(example.total('full') - example.layer('flash').kept_bytes + "
                "example_layer.kept_bytes) / GB:.1f]] GB. But every step then runs a second forward pass: a third "
                "more FLOPs for what comes free elsewhere.",
            ),
            Choice(
                "Optimizer states to the CPU",
                "That moves 12 bytes a parameter, [[12 * example.model.parameters / GB:.1f]] GB, over the slow link "
                "and leaves [[(example.total() - 12 * example.model.parameters) / GB:.0f]] GB: still too much.",
            ),
        ),
        value=lambda: q.example.fix()[1],
    ),
    QuickCheck(
        name="count-for-a-llama-layer",
        section="Llama-style layers",
        question="Somebody plans a LLaMA 7B run (h = 4096, f = 11008, FlashAttention) with 34·sbh a layer. "
        "What is the count by hand for this layer, if SwiGLU runs as ordinary operations?",
        choices=(
            Choice(
                "34 sbh: the formula is for transformers in general",
                "It is the list of one particular layer: GeLU, a 4h MLP, dropout. Another layer has another list.",
            ),
            Choice(
                "Less than 34, since there is no dropout",
                "The masks do go (2 sbh). But the gated MLP keeps four tensors that are f wide, "
                "and these add more than the masks took.",
            ),
            Choice(
                "[[value]] sbh",
                "12 + 4/g + 8f/h with g = 1: 16 for norms, attention and residual stream, and 8f/h = 21.5 for SwiGLU. "
                "The plan was about a tenth short.",
                right=True,
            ),
        ),
        value=lambda: q.sbh(q.llama7.layer(4096, 1)),
    ),
)

QUICK_CHECKS: dict[str, QuickCheck] = {check.name: check for check in _ALL}
