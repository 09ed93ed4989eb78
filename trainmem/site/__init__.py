"""The course as a static site: ``python -m trainmem.site FOLDER``. It needs no kernel and loads nothing from elsewhere.

============== =======================================================================================================
module         its job
============== =======================================================================================================
moves          which settings of each figure the site shows, as pictures of `trainmem.figures`
packing        frames as short lists of shared pieces, for the script that shows them
checks         quick checks as choices that unfold
formulas       TeX to MathML
links          where a link of a source leads to on the site
exporter       nbconvert's exporter with the above and the template beside this file
measured       recorded runs of the GPU notebook as tables
pages          which pages there are, and what each is made of
folder         the folder that holds a site, and which of its files an earlier run wrote
build          all of it into a folder
============== =======================================================================================================
"""
