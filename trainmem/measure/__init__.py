"""What a real framework keeps, measured on small models. This folder needs torch (`layout` apart); nothing else
of the course does.

============= =========================================================================================================
module        what is in it
============= =========================================================================================================
saved         `saved_tensors()`: what autograd keeps, counted by storage, each named by operation and role
agreement     `disagreements(block, saved)`: a list of `trainmem.memory` against a measurement, tensor by tensor
live          `live_storage()`: every storage over a whole step, the peak and its moment
models        `GPTLayer`, `LlamaLayer`, `Transformer`, `Head`, `MasterAdam`, adapters: the models that are measured
naming        `op`, `inside`, `Moment`: how operations get their names
cuda          a CUDA device: the allocator's peaks, times by events, a cap on memory, a snapshot of every allocation
device        `this_device()`: a GPU or the CPU behind one interface, with a meter and a clock
checkpointing the experiment of the GPU notebook: settings, shapes that fit a card, `predict`, `measure`
progress      `Run`: many cases with a bar, saved after each, going on after an interruption
layout        what a results file holds, checked as it is read: for the notebook and for the site
results       `Results`: JSON files of a run, and what to say of those that cannot be read
tables        predictions, peaks and times as Markdown
reading       what the numbers say, in sentences: your guess, a difference, an out-of-memory error
quantities    bytes and parts for people
plots         pictures of the experiment, each with its sentence
__main__      ``python -m trainmem.measure``: the whole experiment from a terminal
============= =========================================================================================================
"""
