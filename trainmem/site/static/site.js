// Shows the figures' frames. All of them were made beforehand, in Python: this script picks one and joins its pieces.
for (const figure of document.querySelectorAll('figure[data-frames]')) {
  const {pieces, presets} = globalThis.trainmemFrames[figure.dataset.frames];
  const [form, preset, slider, output] = ['form', 'select', 'input', 'output'].map(tag => figure.querySelector(tag));
  const places = figure.querySelectorAll('[data-section]');
  const show = () => {
    const frame = presets[preset.value].frames[slider.value];
    frame.html.forEach((row, section) => { places[section].innerHTML = row.map(piece => pieces[piece]).join(''); });
    slider.setAttribute('aria-valuetext', frame.at);
    output.value = frame.at;
  };
  const open = () => {
    slider.max = presets[preset.value].last;
    slider.value = presets[preset.value].start;
    show();
  };
  const [back, next] = figure.querySelectorAll('button');
  preset.addEventListener('change', open);
  slider.addEventListener('input', show);
  back.addEventListener('click', () => { slider.stepDown(); show(); });
  next.addEventListener('click', () => { slider.stepUp(); show(); });
  form.addEventListener('submit', event => event.preventDefault());
  form.hidden = false;
}

// What is too wide for the screen scrolls in its box, and can then be reached by keys.
const boxes = document.querySelectorAll('pre, .scrolls');
const reach = () => boxes.forEach(box => {
  if (box.scrollWidth > box.clientWidth) box.setAttribute('tabindex', '0');
  else box.removeAttribute('tabindex');
});
addEventListener('resize', reach);
addEventListener('toggle', reach, true);
reach();
