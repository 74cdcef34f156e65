"use strict";
// What a reader does with a report: sort and filter its tables, and look at single samples.
(() => {
  const make = (tag, given = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name in made && typeof value !== "string") made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...inside);
    return made;
  };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const count = (number) => number.toLocaleString("en-US");

  // -- tables ------------------------------------------------------------------------------------

  const UNITS = {
    B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
    ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600,
  };
  const NUMBER = /^[≤≥<>+\s]*([-−]?[\d,]*\.?\d+(?:e[-+]?\d+)?) ?([kMGT]?i?B|[nµm]?s|min|h)?(?![\w.-])/;

  /** What a cell is sorted by: its first number with its unit, else its words; null: a dash. */
  const valueOf = (text) => {
    if (text === "" || text === "–") return null;
    const found = NUMBER.exec(text);
    if (found === null) return text;
    return Number(found[1].replaceAll(",", "").replace("−", "-")) * (UNITS[found[2]] ?? 1);
  };

  const compare = (one, other, sign) => {
    if (one === null || other === null) return (one === null) - (other === null);
    const both = typeof one === "number" && typeof other === "number";
    return sign * (both ? one - other : String(one).localeCompare(String(other), "en", { numeric: true }));
  };

  const enliven = (table) => {
    const body = table.tBodies[0], rows = [...body.rows];
    if (rows.length < 2) return;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        const order = next === undefined ? "ascending" : next;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order);
        table.classList.toggle("sorted", order !== null);
        const keyed = rows.map((row) => [valueOf(row.cells[column].textContent.trim()), row]);
        const sign = order === "descending" ? -1 : 1;
        if (order) keyed.sort(([one], [other]) => compare(one, other, sign));
        body.append(...keyed.map(([, row]) => row));
      });
    });
    if (!table.closest("[data-figures]")) sieve(table.closest(".table")?.querySelector(".bar"), [rows]);
  };

  /** A field in `bar` that leaves the rows which have all its words; of several tables at once. */
  const sieve = (bar, tables) => {
    if (!bar || tables[0].length < 6) return;
    const found = make("output", { class: "small" });
    const input = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of tables.flat()) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const shown = tables[0].filter((row) => !row.hidden).length;
      found.textContent = words.length ? `${shown} of ${tables[0].length} rows` : "";
    });
    bar.append(make("div", { class: "tools" }, found, make("label", {}, "Filter ", input)));
  };

  all("table").forEach(enliven);

  // Tables of a comparison: one of a block's figures at a time.
  for (const block of all("[data-figures]")) {
    const parts = all("[data-figure]", block), select = make("select");
    if (parts.length < 2) continue;
    select.append(...parts.map((part) => make("option", {}, part.dataset.figure)));
    const show = () => parts.forEach((part, place) => { part.hidden = place !== select.selectedIndex; });
    select.selectedIndex = Number(block.dataset.figures);
    select.addEventListener("change", show);
    show();
    const bar = block.querySelector(".bar");
    bar.append(make("div", { class: "tools" }, make("label", {}, "Figure ", select)));
    sieve(bar, parts.map((part) => all("tbody tr", part)));
  }

  // What is wider than its place can be scrolled with the keyboard.
  const reachable = () => all(".scroll").forEach((each) => {
    if (each.scrollWidth > each.clientWidth + 1) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  });
  reachable();
  addEventListener("resize", reachable);
  all("details").forEach((each) => each.addEventListener("toggle", reachable));

  // -- samples -----------------------------------------------------------------------------------

  const ms = (us) => {
    const value = us / 1000, size = Math.abs(value);
    return value.toFixed(size < 0.1 ? 3 : size < 10 ? 2 : size < 1000 ? 1 : 0);
  };
  const at = (column, place) => (Array.isArray(column) ? column[place] : column);
  const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;

  const ticks = (low, high, most) => {
    const rough = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((part) => part * power).find((each) => each >= rough);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high * 1.0001; value += step) found.push(value);
    return found;
  };
  const decades = (low, high) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
      for (const part of [1, 2, 5]) {
        const value = part * 10 ** power;
        if (value >= low && value <= high) found.push(value);
      }
    }
    return found.length > 7 ? found.filter((value) => Math.log10(value) % 1 === 0) : found;
  };
  const plain = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 4 });

  const MARKS = {
    o: (pen, x, y, r) => pen.arc(x, y, r, 0, 7),
    s: (pen, x, y, r) => pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8),
    "^": (pen, x, y, r) => { pen.moveTo(x, y - r * 1.2); pen.lineTo(x + r * 1.1, y + r); pen.lineTo(x - r * 1.1, y + r); pen.closePath(); },
    v: (pen, x, y, r) => { pen.moveTo(x, y + r * 1.2); pen.lineTo(x + r * 1.1, y - r); pen.lineTo(x - r * 1.1, y - r); pen.closePath(); },
    D: (pen, x, y, r) => { pen.moveTo(x, y - r * 1.3); pen.lineTo(x + r * 1.3, y); pen.lineTo(x, y + r * 1.3); pen.lineTo(x - r * 1.3, y); pen.closePath(); },
  };
  const cross = (pen, x, y, r) => { pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r); pen.moveTo(x - r, y + r); pen.lineTo(x + r, y - r); };
  const mark = (pen, look, x, y, r, open, colour, ground) => {
    pen.beginPath();
    (MARKS[look.marker] ?? MARKS.o)(pen, x, y, r);
    pen.fillStyle = open ? ground : colour;
    pen.strokeStyle = open ? colour : ground;
    pen.lineWidth = open ? 1.2 : 0.5;
    pen.fill();
    pen.stroke();
  };

  class Strip {
    constructor(place, data) {
      this.place = place;
      this.details = place.parentElement.querySelector("[data-samples]");
      this.details?.addEventListener("toggle", () => { if (this.details.open) this.list(); });
      this.view = data.timeline ? "time" : "latency";
      this.log = data.timeline !== null;
      this.chosen = { name: "", of: "" };
      this.dark = matchMedia("(prefers-color-scheme: dark)");
      const again = (printing = false) => {
        this.printing = document.documentElement.toggleAttribute("data-printing", printing);
        this.legend();
        this.draw();
      };
      this.dark.addEventListener("change", () => again());
      addEventListener("beforeprint", () => again(true));
      addEventListener("afterprint", () => again());
      this.take(data);
    }

    /** Shows these samples, in place of those before where it follows a run. */
    take(data) {
      const seen = this.current && this.sample();
      const names = [...new Set(data.lanes.map((lane) => lane.name))];
      this.data = data;
      this.lanes = data.lanes
        .map((lane) => ({
          ...lane,
          latency: Array.from({ length: lane.shown }, (_, i) => {
            const total = at(lane.total, i);
            return total === null ? null : total + (at(lane.wait ?? 0, i) ?? 0);
          }),
        }))
        .sort((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
      const shape = JSON.stringify(this.lanes.map((lane) => [lane.name, lane.of, lane.series]));
      if (shape !== this.shape) this.build(names);
      this.shape = shape;
      this.show();
      this.visible.forEach((lane, place) => {
        if (seen?.key !== `${lane.of} ${lane.series} ${lane.name}`) return;
        for (let i = 0; i < lane.shown; i++) if (at(lane.seq, i) === seen.seq) this.pick({ lane: place, place: i });
      });
    }

    sample() {
      const lane = this.visible[this.current.lane];
      return { key: `${lane.of} ${lane.series} ${lane.name}`, seq: at(lane.seq, this.current.place) };
    }

    isDark() {
      return this.dark.matches && !this.printing;
    }

    build(names) {
      const radio = (value, text) => {
        const input = make("input", { type: "radio", name: "view", value, checked: this.view === value });
        input.addEventListener("change", () => { this.view = value; this.show(); });
        return make("label", {}, input, text);
      };
      const log = make("input", { type: "checkbox", checked: this.log });
      log.addEventListener("change", () => { this.log = log.checked; this.show(); });
      const tools = make(
        "div", { class: "tools" },
        make("fieldset", { "aria-label": "What is drawn" }, radio("latency", "by latency"), radio("time", "over time")),
        make("label", {}, log, "logarithmic"),
      );
      const ofs = [...new Set(this.lanes.map((lane) => lane.of))];
      for (const [key, values, text] of [["name", names, "Of"], ["of", ofs, "Run or point"]]) {
        if (values.length < 2) continue;
        const select = make("select", {}, make("option", { value: "" }, "all"), ...values.map((each) => make("option", {}, each)));
        if (key === "name" && this.lanes.length > 24) select.value = this.chosen.name = values[0];
        select.addEventListener("change", () => { this.chosen[key] = select.value; this.show(); });
        tools.append(make("label", {}, text, select));
      }
      this.amount = make("output", { class: "small" });
      tools.append(this.amount);
      this.readout = make("div", { class: "readout", "aria-live": "polite" });
      this.canvas = make("canvas", { "aria-hidden": "true" });
      this.plot = make("div", {
        class: "plot", tabindex: "0", role: "application", "aria-label": "Every sample; arrow keys go from one to the next",
      }, this.canvas);
      this.keys = make("div", { class: "keys" });
      this.place.replaceChildren(tools, this.readout, this.plot, this.keys);
      this.legend();
      this.plot.addEventListener("pointermove", (event) => this.point(event));
      this.plot.addEventListener("pointerdown", (event) => this.point(event));
      this.plot.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    legend() {
      this.keys.replaceChildren();
      for (const look of [...this.data.series, null]) {
        const canvas = make("canvas", { width: 24, height: 24, "aria-hidden": "true" });
        canvas.style.width = canvas.style.height = "12px";
        const pen = canvas.getContext("2d");
        pen.scale(2, 2);
        if (look) mark(pen, look, 6, 6, 4, false, this.isDark() ? look.fill : look.dark, "transparent");
        else { pen.strokeStyle = this.colour("alarm"); pen.lineWidth = 1.6; pen.beginPath(); cross(pen, 6, 6, 3.5); pen.stroke(); }
        this.keys.append(make("span", {}, canvas, look ? look.name : "not ok: failed, or its outcome is unknown"));
      }
      if (this.lanes.some((lane) => lane.open)) this.keys.append(make("span", {}, "open: the target node holds no replica"));
    }

    colour(name) {
      return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    }

    show() {
      const { name, of } = this.chosen;
      this.visible = this.lanes.filter((lane) => (!name || lane.name === name) && (!of || lane.of === of));
      const shown = this.visible.reduce((sum, lane) => sum + lane.shown, 0);
      const taken = this.visible.reduce((sum, lane) => sum + lane.n, 0);
      this.amount.textContent = shown === taken ? `${count(shown)} samples`
        : `${count(shown)} of ${count(taken)} samples: of each row failures, the slowest, and an even choice of the others`;
      this.current = null;
      this.read();
      this.draw();
      if (this.details?.open) this.list();
    }

    /** Lays the lanes out: where each sample is, and what the axes say. */
    lay(width) {
      const narrow = width < 620, byTime = this.view === "time";
      const left = narrow ? 12 : 190, right = byTime ? 68 : 26, head = narrow ? 18 : 0;
      const height = byTime ? 84 : Math.max(22, Math.min(40, 420 / this.visible.length));
      const values = this.visible.map((lane) => lane.latency.filter((each) => each !== null).sort((a, b) => a - b));
      const greatest = Math.max(1, ...values.map((each) => each.at(-1) ?? 0));
      const bulk = Math.max(1, ...values.map((each) => quantile(each, 0.95)));
      const least = Math.max(1, Math.min(...values.map((each) => each.find((value) => value > 0) ?? Infinity)));
      const limit = this.log || greatest <= 1.5 * bulk ? greatest * 1.03 : bulk * 1.1;
      const instants = this.visible.flatMap((lane) => lane.shown ? [at(lane.at, 0), at(lane.at, lane.shown - 1)] : []);
      const bands = byTime ? this.data.timeline : null;
      const ends = [...instants, ...(bands?.phases ?? []).flatMap((each) => [each.begin * 1e6, each.end * 1e6])];
      const low = byTime ? Math.min(0, ...ends) : this.log ? least * 0.9 : 0, high = byTime ? Math.max(1, ...ends) * 1.005 : limit;
      const span = width - left - right;
      const x = byTime || !this.log
        ? (value) => left + ((Math.min(value, high) - low) / (high - low)) * span
        : (value) => left + (Math.log(Math.max(value, low) / low) / Math.log(high / low)) * span;
      const top = bands ? 24 + 16 * Math.min(bands.faults.length, 6) : 28;
      let y = top;
      const laid = this.visible.map((lane, place) => {
        const begin = y + head, xs = new Float32Array(lane.shown), ys = new Float32Array(lane.shown);
        const own = values[place], up = byTime ? (this.log ? limit : Math.max(1, (own.at(-1) ?? 0) <= 2 * quantile(own, 0.95) ? own.at(-1) ?? 1 : 1.2 * quantile(own, 0.95))) : 1;
        const rise = (value) => Math.max(0, Math.min(1, this.log ? Math.log(Math.max(value, least) / least) / Math.log(up / least || 2) : value / up));
        for (let i = 0; i < lane.shown; i++) {
          const value = lane.latency[i] ?? 0;
          xs[i] = x(byTime ? at(lane.at, i) ?? low : value);
          ys[i] = byTime ? begin + height - 6 - rise(value) * (height - 14)
            : begin + 5 + (height - 10) * (lane.shown > 1 ? i / (lane.shown - 1) : 0.5);
        }
        y = begin + height;
        return { lane, begin, height, xs, ys, up };
      });
      return { laid, x, low, high, left, right, span, top, bottom: y, narrow, byTime, bands, beyond: !byTime && limit < greatest };
    }

    draw() {
      const width = this.plot.clientWidth;
      if (!width) return;
      const ratio = devicePixelRatio || 1, laid = this.laid = this.lay(width), height = laid.bottom + 42;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
      const pen = this.canvas.getContext("2d"), dark = this.isDark();
      const [ink, quiet, line, faint, alarm, sheet, accent] = ["ink", "quiet", "line", "faint", "alarm", "sheet", "accent"].map((each) => this.colour(each));
      pen.scale(ratio, ratio);
      pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
      pen.textBaseline = "middle";
      const text = (words, x, y, colour, align = "left", room = Infinity) => {
        let shown = words;
        // In the middle: points of a matrix have names that begin alike.
        for (let kept = words.length - 1; kept > 1 && pen.measureText(shown).width > room; kept--) {
          const tail = Math.ceil(0.6 * kept);
          shown = `${words.slice(0, kept - tail)}…${words.slice(-tail)}`;
        }
        pen.fillStyle = colour;
        pen.textAlign = align;
        pen.fillText(shown, x, y);
      };
      const stroke = (x1, y1, x2, y2, colour, dash = []) => {
        pen.beginPath(); pen.setLineDash(dash); pen.moveTo(x1, y1); pen.lineTo(x2, y2);
        pen.strokeStyle = colour; pen.lineWidth = 1; pen.stroke(); pen.setLineDash([]);
      };
      this.ground(pen, laid, { text, stroke, ink, quiet, line, faint, dark });
      for (const { lane, begin, height: tall, xs, ys } of laid.laid) {
        const look = this.data.series[lane.series], colour = dark ? look.fill : look.dark;
        const name = [lane.of, lane.name].filter(Boolean).join(" · ");
        if (laid.narrow) { pen.fillStyle = sheet; pen.fillRect(0, begin - 17, width, 16); }
        if (laid.narrow) text(`${name} · ${look.name}`, laid.left, begin - 9, ink, "left", laid.span + 10);
        else {
          text(name, 12, begin + tall / 2 - 7, ink, "left", laid.left - 24);
          text(look.name, 12, begin + tall / 2 + 8, quiet, "left", laid.left - 24);
        }
        stroke(laid.left, begin + tall - 0.5, width - laid.right, begin + tall - 0.5, line);
        const r = lane.shown > 1500 ? 1.6 : lane.shown > 400 ? 2.2 : 3;
        for (let i = 0; i < lane.shown; i++) {
          if (at(lane.outcome, i) === 0) mark(pen, look, xs[i], ys[i], r, lane.open, colour, sheet);
        }
        pen.strokeStyle = alarm;
        pen.lineWidth = 1.6;
        pen.beginPath();
        for (let i = 0; i < lane.shown; i++) if (at(lane.outcome, i) !== 0) cross(pen, xs[i], ys[i], 3.2);
        pen.stroke();
      }
      if (this.current) {
        const { xs, ys } = laid.laid[this.current.lane], [x, y] = [xs[this.current.place], ys[this.current.place]];
        stroke(x, laid.top, x, laid.bottom, accent, [2, 3]);
        pen.beginPath(); pen.arc(x, y, 7, 0, 7); pen.strokeStyle = accent; pen.lineWidth = 2; pen.stroke();
      }
    }

    /** What lies behind the samples: axes, multiples of the RTT, what was broken when. */
    ground(pen, laid, { text, stroke, ink, quiet, line, faint, dark }) {
      const { x, low, high, left, right, span, top, bottom, byTime, bands } = laid, end = left + span;
      if (bands) {
        bands.faults.forEach((fault, place) => {
          const [from, to] = [x(fault.begin * 1e6), x(fault.end === null ? high : fault.end * 1e6)];
          pen.fillStyle = dark ? "#4a2b2b80" : "#efcac480";
          pen.fillRect(from, top - 2, Math.max(2, to - from), bottom - top + 2);
          if (place < 6) text(fault.name, Math.min(from, end - 120), 12 + 16 * place, ink, "left", Math.max(120, end - from));
        });
        for (const phase of bands.phases) {
          const from = x(phase.begin * 1e6);
          stroke(from, top - 6, from, bottom, quiet, [4, 3]);
          text(phase.name, from + 4, top - 6, quiet);
        }
      }
      const factor = byTime ? 1e6 : 1e3, most = Math.max(3, Math.floor(span / 90));
      const marks = !byTime && this.log ? decades(low / factor, high / factor) : ticks(low / factor, high / factor, most);
      for (const value of marks) {
        const place = x(value * factor);
        stroke(place, top, place, bottom, faint);
        text(plain(value), place, bottom + 12, quiet, "center");
      }
      text(byTime ? (bands ? "due, s since the drill began" : "sent, s since the first sample") : "latency of one request, ms",
        (left + end) / 2, bottom + 30, ink, "center");
      const rtt = this.data.rtt_ms;
      if (!byTime && !this.log && rtt && high / 1e3 / rtt < 40) {
        const step = Math.ceil(high / 1e3 / rtt / (span / 44));
        if (!laid.narrow) text("RTTs", left - 10, 14, quiet, "right");
        for (let n = 0; n * rtt * 1e3 <= high; n += step) {
          const place = x(n * rtt * 1e3);
          stroke(place, top - 4, place, bottom, quiet, [1, 3]);
          text(String(n), place, 14, quiet, "center");
        }
      }
      if (byTime) {
        for (const { begin, up, lane } of laid.laid) {
          if (lane.shown) text(`${plain(up / 1e3)} ms`, end + right - 2, begin + 9, quiet, "right");
        }
      }
      if (laid.beyond) text("farther ›", end + right - 2, bottom + 30, quiet, "right");
    }

    point(event) {
      const box = this.plot.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = 26 ** 2, found = null;
      this.laid?.laid.forEach(({ xs, ys, begin, height }, lane) => {
        if (y < begin - 20 || y > begin + height + 20) return;
        for (let i = 0; i < xs.length; i++) {
          const away = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
          if (away < best) { best = away; found = { lane, place: i }; }
        }
      });
      if (found) this.pick(found);
    }

    key(event) {
      const lanes = this.laid.laid, { lane, place } = this.current ?? { lane: 0, place: -1 };
      const order = (number) => [...lanes[number].xs.keys()].sort((a, b) => lanes[number].xs[a] - lanes[number].xs[b]);
      const near = (number) => order(number).reduce((best, each) =>
        Math.abs(lanes[number].xs[each] - lanes[lane].xs[place]) < Math.abs(lanes[number].xs[best] - lanes[lane].xs[place]) ? each : best);
      const along = (by) => {
        const places = order(lane), now = places.indexOf(place);
        return { lane, place: places[Math.max(0, Math.min(places.length - 1, place < 0 ? 0 : now + by))] };
      };
      const across = (by) => {
        const next = Math.max(0, Math.min(lanes.length - 1, lane + by));
        return place < 0 ? along(0) : { lane: next, place: near(next) };
      };
      const moves = {
        ArrowRight: () => along(1), ArrowLeft: () => along(-1), ArrowDown: () => across(1), ArrowUp: () => across(-1),
        Home: () => along(-1e9), End: () => along(1e9), Escape: () => null,
      };
      if (!(event.key in moves) || !lanes.some(({ lane: each }) => each.shown)) return;
      event.preventDefault();
      this.pick(moves[event.key]());
    }

    pick(found) {
      if (found && this.current && found.lane === this.current.lane && found.place === this.current.place) return;
      this.current = found?.place === undefined ? null : found;
      this.read();
      requestAnimationFrame(() => this.draw());
    }

    /** The figures of the sample that is pointed at. */
    read() {
      const fields = (given) => make("dl", {}, ...given.map(([name, value, kind]) => make("div", {},
        make("dt", { class: "label" }, name), make("dd", kind ? { class: kind } : {}, value))));
      this.readout.classList.toggle("idle", !this.current);
      if (!this.current) {
        const names = ["sequence", "outcome", "sent", "connect", "first byte", "total", "network error", "requested RTT", "retransmits"];
        this.readout.replaceChildren(make("p", {}, "Point at a sample, or go from one to the next with the arrow keys."), fields(names.map((name) => [name, "–"])));
        return;
      }
      const lane = this.visible[this.current.lane], i = this.current.place;
      const [total, first, connect, network, wait] = ["total", "first", "connect", "network", "wait"].map((key) => at(lane[key] ?? null, i));
      const outcome = this.data.outcomes[at(lane.outcome, i)], error = at(lane.error, i);
      const time = (us) => (us === null ? "–" : `${ms(us)} ms`);
      const list = fields([
        ["sequence", String(at(lane.seq, i) ?? "–")],
        ["outcome", outcome, outcome === "ok" ? "" : "bad-outcome"],
        [lane.wait === undefined ? "sent" : "due", `${((at(lane.at, i) ?? 0) / 1e6).toFixed(3)} s`],
        ...(lane.wait === undefined ? [] : [["waited to be sent", wait === null ? "never sent" : time(wait)]]),
        ["connect", connect === 0 ? "kept" : time(connect)],
        ["first byte", time(first)],
        ["total", time(total)],
        ["network error", network === null ? "not known" : time(network)],
        ["requested RTT", at(lane.rtt, i) === null ? "–" : `${at(lane.rtt, i)} ms`],
        ["retransmits", String(at(lane.again, i) ?? "–")],
      ]);
      if (error !== null) list.append(make("div", { class: "error" }, make("dt", { class: "label" }, "error"), make("dd", {}, this.data.errors[error])));
      const parts = [["queued", wait ?? 0], ["connect", connect ?? 0]];
      const begun = connect ?? 0;
      if (total !== null) parts.push(["waiting", (first ?? total) - begun], ["transfer", first === null ? 0 : total - first]);
      const bar = make("div", { class: "phases", "aria-hidden": "true" });
      for (const [name, us] of parts) {
        if (us <= 0) continue;
        const part = make("span", { class: name }, `${{ waiting: "first byte", queued: "waited" }[name] ?? name} ${ms(us)}`);
        part.style.flex = `${us} 0 0`;
        bar.append(part);
      }
      const title = [lane.of, this.data.series[lane.series].name, lane.name].filter(Boolean).join(" · ");
      this.readout.replaceChildren(make("p", {}, make("b", {}, title)), list, bar);
    }

    /** The same samples as a table. */
    list() {
      const heads = ["of", "sequence", "outcome", "sent s", "connect ms", "first byte ms", "total ms", "network error ms", "error"];
      const most = 2000, rows = [];
      for (const lane of this.visible) {
        const name = [lane.of, this.data.series[lane.series].name, lane.name].filter(Boolean).join(" ");
        for (let i = 0; i < lane.shown && rows.length < most; i++) {
          const time = (key) => { const us = at(lane[key], i); return us === null ? "–" : (us / 1e3).toFixed(3); };
          const error = at(lane.error, i);
          rows.push([name, String(at(lane.seq, i) ?? "–"), this.data.outcomes[at(lane.outcome, i)], ((at(lane.at, i) ?? 0) / 1e6).toFixed(3),
            time("connect"), time("first"), time("total"), time("network"), error === null ? "–" : this.data.errors[error]]);
        }
      }
      const isWords = (place) => [0, 2, 8].includes(place);
      const table = make("table", {},
        make("thead", {}, make("tr", {}, ...heads.map((head, place) => make("th", { scope: "col", class: isWords(place) ? "w" : "n" }, head)))),
        make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, place) => make("td", { class: isWords(place) ? "w" : "n" }, cell))))));
      const total = this.visible.reduce((sum, lane) => sum + lane.shown, 0);
      const bar = make("div", { class: "bar" }, make("p", { class: "small" }, total > most ? `The first ${count(most)} of ${count(total)}: choose fewer above.` : ""));
      this.details.querySelector(".table")?.remove();
      this.details.append(make("div", { class: "table" }, bar, make("div", { class: "scroll", role: "region", "aria-label": "Samples" }, table)));
      enliven(table);
      reachable();
    }
  }

  for (const place of all("[data-strip]")) {
    const data = document.getElementById("strip-data");
    if (data) new Strip(place, JSON.parse(data.textContent));
    place.begin = (first) => new Strip(place, first);
  }
  addEventListener("beforeprint", () => all("details:not([data-samples])").forEach((each) => { each.open = true; }));
})();
