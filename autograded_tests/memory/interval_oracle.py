"""A second way to the memory of a step: the birth and the death of every tensor of the whole model, as intervals.

It knows operations (what they read, make and keep) and when each runs, and nothing of how `Step` lays out its pieces.
"""

from collections import defaultdict


def step_totals(layer, L, head, embedding, every=None, resident=False):
    """[(phase, block, layer, operation, bytes during it)] for every operation of the step but the optimizer's."""
    ops, made_by, names = [], {}, []  # ops of the whole model in forward order; tensors are (instance, name)
    last_output = None
    spans = []  # first and last operation that are run again together
    instances = [("embedding", None, embedding), *(("layer", n + 1, layer) for n in range(L)), ("head", None, head)]
    sizes = {}
    layer_start = {}
    for instance, (kind, number, block) in enumerate(instances):
        ident = {name: (instance, name) for name in block.tensors}
        if block.input:
            ident[block.input] = last_output
        start = len(ops)
        layer_start[number] = start
        for op in block.operations:
            for name in op.writes:
                made_by[ident[name]] = len(ops)
                sizes[ident[name]] = block.tensors[name].nbytes
            ops.append(
                {
                    "label": (kind, number, op.name),
                    "op": op,
                    "reads": [ident[x] for x in op.reads],
                    "writes": [ident[x] for x in op.writes],
                    "keeps": [ident[x] for _, x in op.keeps],
                    "gradients": [ident[x] for x in op.differentiable],
                }
            )
        region = [start + i for i, op in enumerate(block.operations) if op.name in block.recomputed]
        if region:
            spans.append((region[0], region[-1]))
        if block.output:
            last_output = ident[block.output]
        names.append(ident)
    if every is not None:
        for first in range(1, L + 1, every):
            last = min(first + every - 1, L)
            spans.append((layer_start[first], layer_start[last] + len(layer.operations) - 1))

    # When everything runs.
    span_of = {i: span for span in spans for i in range(span[0], span[1] + 1)}
    when, order = {}, []

    def happens(phase, i):
        when[phase, i] = len(order)
        order.append((phase, i))

    for i in range(len(ops)):
        happens("forward", i)
    for i in reversed(range(len(ops))):
        if i in span_of and span_of[i][1] == i:
            for j in rebuilt(ops, span_of[i]):
                happens("rebuild", j)
        happens("backward", i)
    end = len(order)

    readers, keepers = defaultdict(list), defaultdict(list)
    for i, op in enumerate(ops):
        for x in op["reads"]:
            readers[x].append(i)
        for x in op["keeps"]:
            keepers[x].append(i)

    lives = []  # (first event, last event, bytes)
    for x, maker in made_by.items():
        home = span_of.get(maker)
        # Who holds the tensor that the forward pass made: operations that keep it, and spans that it enters.
        holders = [i for i in keepers[x] if span_of.get(i) is None]
        holders += [span_of[i][0] for i in readers[x] if i in span_of and span_of[i] != home]
        if holders:
            death = when["backward", min(holders)]
        else:
            death = max((when["forward", i] for i in readers[x]), default=when["forward", maker])
        lives.append((when["forward", maker], death, sizes[x]))
        if home and ("rebuild", maker) in when:
            inside = [i for i in keepers[x] if span_of.get(i) == home]
            if inside:
                death = when["backward", min(inside)]
            else:
                uses = [when["rebuild", i] for i in readers[x] if span_of.get(i) == home and ("rebuild", i) in when]
                death = max(uses, default=when["rebuild", maker])
            lives.append((when["rebuild", maker], death, sizes[x]))

    # Gradients of tensors: an addition hands the storage of its own gradient on.
    group, born, members = {}, {}, defaultdict(list)
    for i in reversed(range(len(ops))):
        op = ops[i]
        own = op["writes"][0] if op["writes"] else None
        for x in op["gradients"]:
            if op["op"].alias and own in group:
                if x not in group:
                    group[x] = group[own]
                    members[group[own]].append(x)
            elif x not in group:
                group[x] = x
                born[x] = when["backward", i]
                members[x].append(x)
            else:
                lives.append((when["backward", i], when["backward", i], sizes[x]))
    for first, names_ in members.items():
        lives.append((born[first], max(when["backward", made_by[x]] for x in names_), sizes[first]))

    # Gradients of parameters.
    arrived = set()
    constant = 0
    for i in reversed(range(len(ops))):
        label = ops[i]["label"]
        for matrix in (*ops[i]["op"].matrices, *ops[i]["op"].shared):
            key = (matrix.name, label[1])
            if matrix.frozen:
                continue
            stays = not resident and key not in arrived
            arrived.add(key)
            event = when["backward", i]
            lives.append((event, end if stays else event, 2 * matrix.elements))
    for instance in instances:
        for matrix in instance[2].matrices:
            constant += matrix.elements * (2 if matrix.frozen else 14 + 2 * resident)

    change = [0] * (end + 2)
    for first, last, nbytes in lives:
        change[first] += nbytes
        change[last + 1] -= nbytes
    totals, held = [], constant
    for event, (phase, i) in enumerate(order):
        held += change[event]
        kind, number, name = ops[i]["label"]
        if phase == "rebuild" and every is None:
            phase, name = "backward", f"rebuilding {name}"
        totals.append((phase, kind, number, name, held))
    return totals


def rebuilt(ops, span):
    """The operations of a span that are run again: all until the last thing that is kept is there."""
    for i in reversed(range(span[0], span[1] + 1)):
        if ops[i]["keeps"]:
            return range(span[0], i + 1 if set(ops[i]["keeps"]) & set(ops[i]["writes"]) else i)
    return range(0)
