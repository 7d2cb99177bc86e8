"use strict";
(() => {
  const { themes, panels } = JSON.parse(document.getElementById("drawn").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  const coarse = matchMedia("(pointer: coarse)").matches;
  const chosen = new Set(); // highlighted methods, by their row in the table
  const views = {}; // the view that each figure shows
  let printing = paper.matches;

  // Light and dark

  const mode = () => (printing ? "light" : root.dataset.mode || (dark.matches ? "dark" : "light"));

  // Replaces "@ink" and "@3" by colours. The result is a new object each time, as plotly compares by identity.
  const coloured = (x, theme) =>
    typeof x === "string" ? (x[0] === "@" && theme[x.slice(1)]) || x
    : Array.isArray(x) ? x.map((entry) => coloured(entry, theme))
    : x && typeof x === "object" ? Object.fromEntries(Object.entries(x).map(([key, entry]) => [key, coloured(entry, theme)]))
    : x;

  const button = document.getElementById("mode");
  const named = () => {
    const next = mode() === "dark" ? "light" : "dark";
    button.textContent = `${next} mode`;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.mode = mode() === "dark" ? "light" : "dark";
    try { localStorage.setItem("pluribus-mode", root.dataset.mode); } catch (error) { /* the choice is forgotten with the page */ }
    named();
    drawAll();
  });
  dark.addEventListener("change", () => { named(); drawAll(); });
  named();

  // Figures

  const settings = {
    displaylogo: false, responsive: true, scrollZoom: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
  };
  const ROOMY = 420; // CSS pixels from which a title and the toolbar fit side by side
  const WIDTH = { one: 640, two: 310, many: 150 }; // on paper, in CSS pixels, as in page.css: A4 and Letter less their margins
  const font = getComputedStyle(document.body).fontFamily;

  const faded = (trace) => {
    const method = trace.meta && trace.meta.method;
    return method !== undefined && chosen.size > 0 && !chosen.has(method);
  };

  function draw(id) {
    const div = document.getElementById(id);
    const panel = panels[id];
    const view = panel.views[views[panel.figure] || 0] || panel.views[0];
    const theme = themes[mode()];
    const data = view.data.map((trace) => {
      const made = coloured(trace, theme);
      // Error bars do not follow the opacity of their trace.
      if (faded(trace)) {
        made.opacity = 0.13;
        for (const bar of ["error_x", "error_y"]) if (made[bar]) made[bar].color = theme.grid;
      }
      return made;
    });
    // Highlighted methods are drawn on top.
    data.sort((a, b) => !faded(a) - !faded(b));
    const layout = coloured(view.layout, theme);
    layout.font.family = font;
    layout.autosize = !printing;
    if (printing) layout.width = WIDTH[div.closest(".panels").classList[1]];
    // A finger that scrolls the page must not zoom the figure.
    layout.dragmode = coarse ? false : "zoom";
    // The toolbar is as long as the title of a small figure, and lies over it.
    const displayModeBar = coarse || div.clientWidth < ROOMY ? false : "hover";
    layout.modebar = { bgcolor: theme.paper, color: theme.muted, activecolor: theme.ink };
    div.setAttribute("aria-label", view.alt);
    return Plotly.react(div, data, layout, { ...settings, displayModeBar }).then(() => {
      // To a screen reader a figure is one image: its buttons would be tab stops without a name.
      for (const tool of div.querySelectorAll(".modebar-btn")) tool.tabIndex = -1;
      if (!div.dataset.bound) {
        div.dataset.bound = "yes";
        div.on("plotly_relayout", (change) => { if (!("annotations" in change)) label(div, id); });
      }
      return label(div, id);
    });
  }

  // One figure after the other, so that the page stays responsive while many appear.
  let turn = 0;
  async function drawAll() {
    const own = ++turn;
    delete root.dataset.drawn;
    for (const id of Object.keys(panels)) {
      await draw(id);
      if (own !== turn) return;
      await new Promise((done) => setTimeout(done));
    }
    root.dataset.drawn = "yes";
  }

  // Names beside points, where there is room

  const RINGS = [26, 40, 56, 76].flatMap((r) => [-60, -30, 0, 30, 60, 150, 180, 210].map((degrees) => {
    const angle = (degrees * Math.PI) / 180;
    return [Math.round(r * Math.cos(angle)), Math.round(r * Math.sin(angle))];
  }));
  const ruler = document.createElement("canvas").getContext("2d");
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;

  function label(div, id) {
    if (!panels[id].labels || !div._fullLayout) return null;
    const { xaxis, yaxis } = div._fullLayout;
    const theme = themes[mode()];
    const size = 11.5;
    ruler.font = `${size}px ${font}`;
    const taken = []; // what a name must not cover
    const solid = []; // what a line to a name must not cross: bars it may
    const dots = [];
    for (const trace of div.data) {
      if (!trace.meta || faded(trace)) continue;
      const [x, y] = [trace.x[0], trace.y[0]];
      const [px, py] = [xaxis.d2p(x), yaxis.d2p(y)];
      const own = { left: px - 7, right: px + 7, top: py - 7, bottom: py + 7 };
      taken.push(own);
      solid.push(own);
      const bars = [["error_y", py, (v) => yaxis.d2p(v), y], ["error_x", px, (v) => xaxis.d2p(v), x]];
      for (const [bar, at, place, value] of bars) {
        if (!trace[bar]) continue;
        const ends = [place(value + trace[bar].array[0]), place(Math.max(value - trace[bar].arrayminus[0], xaxis.type === "log" && bar === "error_x" ? 1e-9 : -Infinity)), at];
        const [low, high] = [Math.min(...ends), Math.max(...ends)];
        taken.push(bar === "error_y" ? { left: px - 2, right: px + 2, top: low, bottom: high } : { left: low, right: high, top: py - 2, bottom: py + 2 });
      }
      dots.push({ x, y, px, py, own, text: trace.name + (trace.meta?.beyond ? trace.meta.beyond.replace("<", "&lt;") : "") });
    }
    const annotations = [];
    for (const dot of dots) {
      const shown = new DOMParser().parseFromString(dot.text, "text/html").documentElement.textContent;
      const [w, h] = [ruler.measureText(shown).width + 4, size + 3];
      const near = [
        [9, -h / 2], [9, -h - 2], [9, 2], [-9 - w, -h / 2], [-9 - w, -h - 2], [-9 - w, 2], [-w / 2, -h - 8], [-w / 2, 8],
      ];
      // Further away, a thin line leads to the point.
      const far = xaxis._length < 340 ? [] : RINGS.map(([x, y]) => [x > 0 ? x : x - w, y - h / 2]);
      const boxes = [...near, ...far].map(([x, y]) => ({ left: dot.px + x, right: dot.px + x + w, top: dot.py + y, bottom: dot.py + y + h }));
      const inside = (box) => box.left >= 0 && box.right <= xaxis._length + 12 && box.top >= -4 && box.bottom <= yaxis._length;
      // Plotly leads the line to the middle of the name, and lets it end at the name's edge.
      const way = (box) => Array.from({ length: 12 }, (_, step) => 0.1 + 0.07 * step).map((part) => {
        const [x, y] = [dot.px + part * ((box.left + box.right) / 2 - dot.px), dot.py + part * ((box.top + box.bottom) / 2 - dot.py)];
        return { left: x - 1, right: x + 1, top: y - 1, bottom: y + 1 };
      });
      const free = (box, rank) => inside(box) && taken.every((other) => apart(box, other))
        && (rank < near.length || way(box).every((step) => solid.every((other) => other === dot.own || apart(step, other))));
      // A name close to another point misleads: better a line, if there is room for one.
      const clear = (box) => dots.every((other) => other === dot
        || apart(box, { left: other.px - 18, right: other.px + 18, top: other.py - 9, bottom: other.py + 9 }));
      const unmistakable = boxes.findIndex((box, rank) => free(box, rank) && clear(box));
      const place = unmistakable >= 0 ? unmistakable : boxes.findIndex(free);
      if (place < 0) continue; // there is no room; the key below the figure has the name
      const box = boxes[place];
      taken.push(box);
      solid.push(box, ...(place < near.length ? [] : way(box)));
      annotations.push({
        x: xaxis.type === "log" ? Math.log10(dot.x) : dot.x, y: dot.y, text: dot.text, font: { size, color: theme.ink },
        showarrow: true, arrowhead: 0, arrowwidth: 0.8, standoff: 6, borderpad: 0, xanchor: "center", yanchor: "middle",
        arrowcolor: place < near.length ? "rgba(0,0,0,0)" : theme.muted,
        ax: (box.left + box.right) / 2 - dot.px, ay: (box.top + box.bottom) / 2 - dot.py,
      });
    }
    return Plotly.relayout(div, { annotations });
  }

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { for (const id of Object.keys(panels)) label(document.getElementById(id), id); }, 250);
  });

  for (const chooser of document.querySelectorAll(".chooser")) {
    chooser.addEventListener("change", (event) => {
      views[chooser.dataset.figure] = Number(event.target.value);
      for (const id of Object.keys(panels)) if (panels[id].figure === chooser.dataset.figure) draw(id);
    });
  }

  // The keys: each is one tab stop, and arrows move within it

  for (const key of document.querySelectorAll(".key")) {
    const buttons = [...key.querySelectorAll("button")];
    key.addEventListener("click", (event) => {
      const pressed = event.target.closest("button");
      if (!pressed) return;
      const method = Number(pressed.dataset.method);
      if (!chosen.delete(method)) chosen.add(method);
      root.classList.toggle("fading", chosen.size > 0);
      for (const other of document.querySelectorAll(".key button")) {
        other.setAttribute("aria-pressed", String(chosen.has(Number(other.dataset.method))));
      }
      drawAll();
    });
    key.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const at = buttons.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      const next = buttons[(at + step + buttons.length) % buttons.length];
      buttons.forEach((other) => { other.tabIndex = other === next ? 0 : -1; });
      next.focus();
    });
  }

  // The table

  const table = document.getElementById("scores");
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", (event) => {
      const sorted = head.getAttribute("aria-sort");
      const order = sorted ? (sorted === "ascending" ? "descending" : "ascending") : event.currentTarget.dataset.first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => row.cells[column].dataset.value;
      const compared = (a, b) => {
        const [x, y] = [value(a), value(b)];
        // Missing values stay at the end in either order.
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        return sign * (column === 0 ? x.localeCompare(y) : Number(x) - Number(y));
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compared));
    });
  });

  // Printing: light colours, and the width of the paper. All figures are drawn at once, as the browser does not wait.

  function toPrint(now) {
    if (printing === now) return;
    printing = now;
    turn += 1;
    for (const id of Object.keys(panels)) draw(id);
    root.dataset.drawn = "yes";
  }
  addEventListener("beforeprint", () => toPrint(true));
  addEventListener("afterprint", () => toPrint(false));
  paper.addEventListener("change", () => toPrint(paper.matches));

  drawAll();
})();
