// Tells assistive technology what ipywidgets leaves out: a slider's name (the widget's tooltip, else
// its description) and its value in words, and which toggle buttons are pressed. Copies links and
// the script of "Copy code", and hands the files that are chosen or dropped on the page to its
// kernel. Runs in JupyterLab and in Voila; running it again does nothing.
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

  async function copyCode(event) {
    const button = event.target.closest?.(".explorer-copy");
    const part = button?.closest(".explorer-code");
    const code = part?.querySelector("pre");
    if (!code) return;
    const done = await copy(code.textContent);
    const told = part.querySelector(".explorer-copied");
    told.textContent = done ? "Copied." : "Not copied: it is selected, press Ctrl+C or ⌘C.";
    if (!done) getSelection().selectAllChildren(code);
    else button.focus();
    setTimeout(() => (told.textContent = ""), COPIED);
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

  async function copyLink(event) {
    const button = event.target.closest?.(".explorer-copy-link");
    if (!button || button.disabled) return;
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

  let waiting = false;
  function tellWidgetsSoon() {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      tellWidgets();
    }, DELAY);
  }

  // Files go to the kernel through a text box that is not seen: some of them as JSON, the bytes in
  // base64, and whether they are the first of those that were chosen or dropped together. The
  // kernel empties the box, and only then are more entered.
  const LARGEST_FILE = 5000000; // bytes; as in explorer/app/files.py
  const LOOK_AGAIN = 100; // ms between two looks at the box
  const queue = [];
  let sending = false;

  // In JupyterLab files may be dropped on other things too; in Voila there is nothing else.
  function pageAt(target) {
    return document.body.dataset.voila ? document.body : target.closest?.(".explorer-page");
  }

  async function read(file) {
    const entry = { name: file.name, size: file.size, content: null };
    if (file.size > LARGEST_FILE) return entry;
    try {
      const url = await new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result);
        reader.onerror = reject;
        reader.readAsDataURL(file);
      });
      entry.content = url.slice(url.indexOf(",") + 1);
    } catch {} // a folder: told by the kernel
    return entry;
  }

  // As many files as came and are together no larger than one may be, and at least one.
  function nextFiles() {
    const taken = [];
    let bytes = 0;
    while (queue.length && !(taken.length && queue[0].first)) {
      const { file } = queue[0];
      const own = file.size > LARGEST_FILE ? 0 : file.size;
      if (taken.length && bytes + own > LARGEST_FILE) break;
      bytes += own;
      taken.push(queue.shift().file);
    }
    return taken;
  }

  async function send(page, files) {
    queue.push(...[...files].map((file, number) => ({ page, file, first: number === 0 })));
    if (sending) return;
    sending = true;
    while (queue.length) {
      const { page: target, first } = queue[0];
      const entries = await Promise.all(nextFiles().map(read));
      const box = () => target.querySelector(".explorer-files textarea");
      while (box()?.value) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
      if (!box()) continue;
      box().value = JSON.stringify({ first, files: entries });
      box().dispatchEvent(new Event("change", { bubbles: true }));
    }
    sending = false;
  }

  function takeFiles() {
    const isFiles = (event) => event.dataTransfer?.types.includes("Files");
    const leave = () =>
      document.querySelectorAll(".explorer-dropping").forEach((page) => {
        page.classList.remove("explorer-dropping");
      });
    document.addEventListener("dragover", (event) => {
      const page = isFiles(event) && pageAt(event.target);
      if (!page?.querySelector(".explorer-files textarea")) return leave();
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      page.classList.add("explorer-dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) leave();
    });
    document.addEventListener("drop", (event) => {
      leave();
      const page = isFiles(event) && pageAt(event.target);
      if (!page?.querySelector(".explorer-files textarea")) return;
      event.preventDefault();
      send(page, event.dataTransfer.files);
    });
    document.addEventListener("change", (event) => {
      if (!event.target.matches?.(".explorer-chosen")) return;
      send(pageAt(event.target), event.target.files);
      event.target.value = ""; // so that the same file can be chosen again
    });
  }

  function start() {
    document.addEventListener("click", copyCode);
    document.addEventListener("click", copyLink);
    takeFiles();
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

// Draws a figure that follows a slider in the place of the one on show: <span class="explorer-moved"
// data-figure="(JSON)"> in its card. plotly is the one that the renderer of the figures has loaded.
(() => {
  "use strict";

  if (window.explorerMoves) return;
  window.explorerMoves = new WeakMap(); // by the element of a plot, the figure it was given

  function move() {
    for (const moved of document.querySelectorAll(".explorer-card .explorer-moved")) {
      const { figure } = moved.dataset;
      const plot = moved.closest(".explorer-card").querySelector(".js-plotly-plot");
      if (!plot || !window.Plotly || window.explorerMoves.get(plot) === figure) continue;
      window.explorerMoves.set(plot, figure);
      const { data, layout, config } = JSON.parse(figure);
      window.Plotly.react(plot, data, layout, config);
    }
  }

  function start() {
    new MutationObserver(move).observe(document.body, { childList: true, subtree: true });
  }

  if (document.body) start();
  else document.addEventListener("DOMContentLoaded", start);
})();
