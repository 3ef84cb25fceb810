// Tells assistive technology what ipywidgets leaves out: a slider's name (the widget's tooltip, else
// its description) and its value in words, and which toggle buttons are pressed; and copies the
// script of "Copy code". Runs in JupyterLab and in Voila; running it again does nothing.
(() => {
  "use strict";

  if (window.explorerTellsWidgets) return;
  window.explorerTellsWidgets = true;

  const DELAY = 200; // ms: one look at the page for a whole burst of changes
  const COPIED = 5000; // ms that the page says so

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

  // navigator.clipboard is there only where the page is secure, which http:// to another machine is
  // not; there the older way through a selection is taken.
  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.style.position = "fixed";
      document.body.append(area);
      area.select();
      try {
        return document.execCommand("copy");
      } finally {
        area.remove();
      }
    }
  }

  async function copyCode(event) {
    const button = event.target.closest?.(".explorer-copy");
    const part = button?.closest(".explorer-code");
    const code = part?.querySelector("pre");
    if (!code) return;
    const done = await copied(code.textContent);
    const told = part.querySelector(".explorer-copied");
    told.textContent = done ? "Copied." : "Not copied: it is selected, press Ctrl+C or ⌘C.";
    if (!done) getSelection().selectAllChildren(code);
    else button.focus();
    setTimeout(() => (told.textContent = ""), COPIED);
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
    document.addEventListener("click", copyCode);
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
