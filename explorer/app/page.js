// Tells assistive technology what ipywidgets leaves out: a slider's name (the widget's tooltip, else
// its description) and its value in words, and which toggle buttons are pressed. Runs in JupyterLab
// and in Voila; running it again does nothing.
(() => {
  "use strict";

  if (window.explorerTellsWidgets) return;
  window.explorerTellsWidgets = true;

  const DELAY = 200; // ms: one look at the page for a whole burst of changes

  // ipywidgets puts the tooltip on the label, or on the widget when it has no description; the
  // label of a widget without a tooltip gets the word null.
  function nameOf(widget) {
    const label = widget.querySelector(".widget-label");
    const tooltip = label?.title === "null" ? "" : label?.title;
    return tooltip || widget.title || label?.textContent.trim();
  }

  function tell(element, attribute, text) {
    if (text && element.getAttribute(attribute) !== text) element.setAttribute(attribute, text);
  }

  function tellWidgets() {
    for (const handle of document.querySelectorAll(".widget-slider [role=slider]")) {
      const slider = handle.closest(".widget-slider");
      tell(handle, "aria-label", nameOf(slider));
      tell(handle, "aria-valuetext", slider.querySelector(".widget-readout")?.textContent);
    }
    for (const button of document.querySelectorAll(".widget-toggle-button")) {
      tell(button, "aria-pressed", String(button.classList.contains("mod-active")));
    }
  }

  let waiting = false;
  function tellWidgetsSoon() {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      tellWidgets();
    }, DELAY);
  }

  function start() {
    tellWidgets();
    new MutationObserver(tellWidgetsSoon).observe(document.body, {
      attributeFilter: ["title", "class"],
      childList: true,
      subtree: true,
    });
  }

  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();

// Downloads what the kernel puts into the page, <span class="explorer-download" data-id="…"
// data-name="result.json" data-content="(base64)">, and presses the hidden button beside it that
// tells the kernel to take it away.
(() => {
  "use strict";

  if (window.explorerDownloads) return;
  window.explorerDownloads = new Set(); // the ids of what was downloaded

  const KEPT = 60000; // ms until a browser that saves slowly must have begun

  function save(name, content) {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    link.download = name;
    document.body.append(link); // Firefox follows no link outside of the page
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
  }

  function saveAll() {
    for (const sent of document.querySelectorAll(".explorer-downloads .explorer-download")) {
      const { id, name, content } = sent.dataset;
      if (window.explorerDownloads.has(id)) continue;
      window.explorerDownloads.add(id);
      save(name, content);
      sent.closest(".explorer-downloads").querySelector(".explorer-download-taken")?.click();
    }
  }

  function start() {
    new MutationObserver(saveAll).observe(document.body, { childList: true, subtree: true });
  }

  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
