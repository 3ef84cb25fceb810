// Gives every ipywidgets slider an accessible name, which noUiSlider leaves out: the widget's
// tooltip, else its description. Runs in JupyterLab and in Voila; running it again does nothing.
(() => {
  "use strict";

  if (window.explorerNamesSliders) return;
  window.explorerNamesSliders = true;

  const DELAY = 200; // ms: one look at the page for a whole burst of changes

  // ipywidgets puts the tooltip on the label, or on the widget when it has no description; the
  // label of a widget without a tooltip gets the word null.
  function nameOf(widget) {
    const label = widget.querySelector(".widget-label");
    const tooltip = label?.title === "null" ? "" : label?.title;
    return tooltip || widget.title || label?.textContent.trim();
  }

  function nameSliders() {
    for (const handle of document.querySelectorAll(".widget-slider [role=slider]")) {
      const name = nameOf(handle.closest(".widget-slider"));
      if (name && handle.getAttribute("aria-label") !== name) {
        handle.setAttribute("aria-label", name);
      }
    }
  }

  let waiting = false;
  function nameSlidersSoon() {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      nameSliders();
    }, DELAY);
  }

  function start() {
    nameSliders();
    new MutationObserver(nameSlidersSoon).observe(document.body, {
      attributeFilter: ["title"],
      childList: true,
      subtree: true,
    });
  }

  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
