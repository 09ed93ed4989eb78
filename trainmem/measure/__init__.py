"""What a real framework keeps, measured on small models. This folder needs torch; nothing else of the course does.

========= =============================================================================================================
module    what is in it
========= =============================================================================================================
saved     `saved_tensors()`: what autograd keeps, counted by storage, each named by operation and role
agreement `disagreements(block, saved)`: a list of `trainmem.memory` against a measurement, tensor by tensor
live      `live_storage()`: every storage over a whole step, the peak and its moment
models    `GPTLayer`, `LlamaLayer`, `Transformer`, `Head`, `MasterAdam`, adapters: the models that are measured
naming    `op`, `inside`, `Moment`: how operations get their names
========= =============================================================================================================
"""
