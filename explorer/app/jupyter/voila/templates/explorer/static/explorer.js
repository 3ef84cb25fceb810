// The page around the notebook: its theme, its start, a lost connection, the address bar.
// Runs first thing in the body, before Voila's own scripts.
(() => {
  "use strict";

  const GRACE = 3000; // ms a lost connection may take to come back before the visitor is told
  const SILENCE = 12000; // ms; while cells run, Voila gives a sign of life at least every 10 s
  const ADDRESS_DELAY = 350; // ms; Safari allows 100 changes of the address in 30 s
  const LARGEST_STATUS = 4096; // bytes; a kernel's status message has some 600

  // The style sheets follow the browser by themselves; JupyterLab's extensions read these.
  function followColorScheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => {
      document.body.dataset.jpThemeLight = String(!dark.matches);
      document.body.dataset.jpThemeName = dark.matches ? "JupyterLab Dark" : "JupyterLab Light";
    };
    dark.addEventListener("change", apply);
    apply();
  }

  // The page shows once its first widget, or the sentence that it failed, is there.
  function showWhenStarted() {
    let silence = null;
    const observer = new MutationObserver(showIfStarted);

    // A browser need not tell that the server went away halfway through a page.
    function hear() {
      clearTimeout(silence);
      silence = setTimeout(showLost, SILENCE);
      hideLost();
    }

    function showIfStarted() {
      if (!document.querySelector(".jupyter-widgets, .explorer-error")) return;
      observer.disconnect();
      document.getElementById("explorer-loading").remove();
      document.body.classList.remove("explorer-loading");
    }

    // The names under which Voila's template reports: a long cell, a cell, the last cell.
    window.voila_heartbeat = hear;
    window.voila_process = hear;
    window.voila_finish = () => {
      clearTimeout(silence);
      observer.observe(document.body, { childList: true, subtree: true });
      showIfStarted();
    };
    hear();
  }

  function showLost() {
    if (document.getElementById("explorer-lost")) return;
    const banner = document.createElement("div");
    banner.id = "explorer-lost";
    banner.setAttribute("role", "alert");
    const reload = document.createElement("button");
    reload.textContent = "Reload";
    reload.addEventListener("click", () => location.reload());
    banner.append("The connection to the server was lost. ", reload);
    document.body.prepend(banner);
  }

  function hideLost() {
    document.getElementById("explorer-lost")?.remove();
  }

  // A kernel that died or was started afresh has lost the page's widgets for good.
  function saysKernelIsGone(data) {
    if ((data.byteLength ?? data.length) > LARGEST_STATUS) return false;
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    return /"execution_state":\s*"(dead|restarting|autorestarting)"/.test(text);
  }

  function watchConnection() {
    let gone = false;
    let timer = null;

    function watch(socket) {
      socket.addEventListener("open", () => {
        clearTimeout(timer);
        timer = null;
        if (!gone) hideLost();
      });
      socket.addEventListener("close", () => {
        timer ??= setTimeout(showLost, GRACE);
      });
      socket.addEventListener("message", (event) => {
        if (gone || !saysKernelIsGone(event.data)) return;
        gone = true;
        showLost();
      });
    }

    window.WebSocket = class extends WebSocket {
      constructor(...args) {
        super(...args);
        if (/\/api\/kernels\/[^/]+\/channels/.test(this.url)) watch(this);
      }
    };
  }

  // Copies the query of the page's state, <span class="explorer-state" data-query="a=1&b=2">, to
  // the address. Of what stood there only the server's own parameters stay, named in data-servers.
  function mirrorState() {
    const nameOf = (parameter) => decodeURIComponent(parameter.split("=")[0].replace(/\+/g, " "));
    const split = (query) => query.split("&").filter(Boolean);
    let shown = null;
    let waiting = false;

    function update() {
      const { query, servers } = document.querySelector(".explorer-state")?.dataset ?? {};
      if (query === undefined || query === shown) return;
      shown = query;
      const own = new Set(servers.split(" "));
      const kept = split(location.search.slice(1)).filter((one) => own.has(nameOf(one)));
      const search = [...split(query), ...kept].join("&");
      const address = location.pathname + (search && `?${search}`) + location.hash;
      history.replaceState(history.state, "", address);
    }

    new MutationObserver(() => {
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        update();
      }, ADDRESS_DELAY);
    }).observe(document.body, {
      attributeFilter: ["data-query"],
      childList: true,
      subtree: true,
    });
  }

  followColorScheme();
  watchConnection();
  showWhenStarted();
  mirrorState();
})();
