"""The measured models are small: more than one thread would only wait."""

import torch

torch.set_num_threads(1)
