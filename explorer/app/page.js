// Tells assistive technology what ipywidgets leaves out: a slider's name (the widget's tooltip, else
// its description) and its value in words, and which toggle buttons are pressed. Copies links.
// Runs in JupyterLab and in Voila; running it again does nothing.
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

  // The clipboard is there for https and localhost alone, not for a class on http://<address>.
  async function copy(text) {
    if (window.isSecureContext && navigator.clipboard) {
      try {
        await navigator.clipboard.writeText(text);
        return true;
      } catch {
        // not allowed: the older way may be
      }
    }
    const area = document.createElement("textarea");
    area.value = text;
    area.readOnly = true;
    area.style.cssText = "position: fixed; top: 0; opacity: 0";
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    before?.focus();
    return copied;
  }

  // The link of a query: of this page's address in Voila. In JupyterLab no page opens in a state.
  function linkOf(element) {
    const query = element.dataset.query;
    if (document.body.dataset.voila === undefined) return `?${query}`;
    // A token is the visitor's own; what else is the server's stays.
    const servers = new Set(element.dataset.servers.split(" ").filter((name) => name !== "token"));
    const kept = [...new URLSearchParams(location.search)].filter(([name]) => servers.has(name));
    const search = [query, new URLSearchParams(kept).toString()].filter(Boolean).join("&");
    return location.origin + location.pathname + (search && `?${search}`);
  }

  async function copyLink(button) {
    const place = button.closest(".explorer-class-form, .explorer-sharing");
    const text = linkOf(place.querySelector("[data-query]"));
    const said = place.querySelector(".explorer-copied");
    said.textContent = ""; // else the same words a second time would not be told
    const copied = await copy(text);
    const where = text.startsWith("?") ? ": put it behind the address of explorer app" : "";
    setTimeout(() => {
      said.textContent = copied ? `Copied${where}.` : `The browser does not copy. Take it: ${text}`;
    }, 50);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".explorer-copy-link");
    if (button && !button.disabled) copyLink(button);
  });

  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
