"""From the modules of trainmem_solutions to the notebooks: cells, editions, the build and its check."""
